// The walks among which `auto` chooses: what goes in lockstep, the layout of the trees, values or rank codes, and
// blocks. They are few points of the host's space (host_template.hpp), with the order of nodes and the unrolling that
// suit the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/schedule.hpp>

#include "scheduler/choose/forest_facts.hpp"
#include "scheduler/choose/host_template.hpp"

namespace forestvm::scheduler {

/// Names the walks that go in lockstep: none, those of a row through several trees, or those of a block's rows through
/// a tree.
enum class Lanes : std::uint8_t { None, Trees, Rows };

enum class WalkLayout : std::uint8_t { Sparse, Tables, TreeTables, Array, TopTables };

struct WalkChoice {
  Lanes lanes = Lanes::None;
  WalkLayout layout = WalkLayout::Sparse;
  bool coded = false;          ///< Walks compare rank codes, as they always do in tables.
  std::uint32_t lockstep = 1;  ///< Walks in lockstep; tables have a lockstep of their own.
  std::uint32_t block = 0;     ///< Rows of a block; 0 with lanes of trees: all rows of the call, one by one.
  bool unrolled = false;       ///< Walks with lanes of trees take the steps of the deepest tree.

  bool operator==(const WalkChoice&) const = default;
};

/// The calls that a plan is for: those of up to a number of rows, or BATCH, on CPUs that have a target, if one is
/// named.
using PlanFor = std::vector<Argument>;

/// A plan of a schedule: its calls, its walk, and the reason for it.
struct PlanChoice {
  PlanFor calls;
  WalkChoice walk;
  std::string why;
};

/// Returns the point of the host's space with this walk.
HostTemplatePoint template_point(const WalkChoice& walk, const ForestFacts& facts);

inline constexpr std::uint32_t kSmallBlock = 256, kLargeBlock = 512;  ///< Rows of blocks.
/// Calls of up to this many rows cost the same with every larger block.
inline constexpr std::uint32_t kMostRowsOfSmallestBlock = 64;

/// Returns the rows of a block whose codes stay in the cache.
std::uint32_t block_of_codes(const ForestFacts& facts);

/// Returns the candidates for calls of this number of rows: walks whose costs can be predicted, in layouts that hold
/// the model's trees.
std::vector<WalkChoice> walks_for(const ForestFacts& facts, std::uint32_t rows);

}  // namespace forestvm::scheduler
