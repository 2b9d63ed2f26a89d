// See walk_choice.hpp.
#include "scheduler/choose/walk_choice.hpp"

#include <cmath>
#include <string_view>

#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/tables.hpp>

namespace forestvm::scheduler {
namespace {

/// Calls of more rows have larger blocks among their candidates, and fewer walks that take one row at a time.
constexpr std::uint32_t kMostRowsOneByOne = 64;
/// The layout `array` stores all trees as complete ones of the greatest depth. It is no candidate for forests whose
/// nodes it would multiply by more than this.
constexpr double kMostAddedNodes = 4;
/// Walks are not unrolled in forests whose deepest tree is more than this many times as deep as the mean.
constexpr double kMostPadding = 2;
/// The most bytes of the codes of a large block: blocks whose codes would leave the cache are small ones.
constexpr std::uint64_t kMaxCachedCodes = 512u << 10;

std::string_view layout_name(WalkLayout layout) {
  switch (layout) {
    case WalkLayout::Sparse:
      return "sparse";
    case WalkLayout::Tables:
      return "tables";
    case WalkLayout::TreeTables:
      return "treeTables";
    case WalkLayout::Array:
      return "array";
    case WalkLayout::TopTables:
      return "topTables";
  }
  return {};
}

/// Returns whether the layout `array` suits a forest.
bool suits_array(const ForestFacts& facts) {
  const double nodes = std::exp2(facts.forest.max_depth + 1) * static_cast<double>(facts.trees);
  return nodes <= kMostAddedNodes * static_cast<double>(facts.forest.nodes);
}

}  // namespace

std::uint32_t block_of_codes(const ForestFacts& facts) {
  return facts.columns * kLargeBlock > kMaxCachedCodes ? kSmallBlock : kLargeBlock;
}

HostTemplatePoint template_point(const WalkChoice& walk, const ForestFacts& facts) {
  HostTemplatePoint point;
  if (walk.lanes != Lanes::Rows) point.lanes = "trees";
  if (walk.block != 0) {
    point.parallel = "rows";
    point.block = walk.block;
  }
  point.interleave = walk.lockstep;
  point.layout = layout_name(walk.layout);
  // The order of nodes along the likeliest walks makes calls of up to 16 rows of deep forests 1.2 times as fast, and
  // changes nothing from 512 rows on.
  if (walk.layout == WalkLayout::Sparse && facts.knows_covers) point.tiling = "probability";
  if (walk.coded) point.encode = "u8";
  if (walk.unrolled) point.walker = "unrolled";
  return point;
}

std::vector<WalkChoice> walks_for(const ForestFacts& facts, std::uint32_t rows) {
  const bool few = rows <= kMostRowsOneByOne;
  const bool nodes_hold_codes =
      facts.columns <= Sparse4View::kMaxColumns && 2 * facts.most_leaves <= Sparse4View::kMaxDistance;
  std::vector<WalkChoice> walks;
  const bool unrolls = facts.padding() <= kMostPadding;
  const auto add = [&](const WalkChoice& walk) {
    if (walk.unrolled && !unrolls) return;
    if (walk.layout == WalkLayout::Array && !suits_array(facts)) return;
    if (walk.coded && walk.layout == WalkLayout::Sparse && !nodes_hold_codes) return;
    if (walk.layout == WalkLayout::Tables && !facts.fits_tables) return;
    if (walk.layout == WalkLayout::TopTables && !facts.suits_top_tables) return;
    if (walk.layout == WalkLayout::TreeTables && facts.most_leaves > kMaxTreeSlots + 1) return;
    walks.push_back(walk);
  };
  if (few) {
    add({Lanes::None, WalkLayout::Sparse, false, 1, 0});
    for (const bool coded : {false, true}) {
      for (const std::uint32_t lockstep : {16u, 64u, 128u})
        for (const bool unrolled : {false, true})
          add({Lanes::Trees, WalkLayout::Sparse, coded, lockstep, 0, unrolled});
      add({Lanes::Trees, WalkLayout::Array, coded, 128, 0, true});
    }
  } else {
    add({Lanes::Trees, WalkLayout::Sparse, true, 128, 64, unrolls});
    add({Lanes::Trees, WalkLayout::Array, true, 128, 64, true});
  }
  add({Lanes::Rows, WalkLayout::TopTables, true, 1, block_of_codes(facts)});
  const std::vector<std::uint32_t> blocks = few ? std::vector{64u} : std::vector{64u, 256u, 512u};
  for (const std::uint32_t block : blocks) {
    add({Lanes::Rows, WalkLayout::Tables, true, 1, block});
    add({Lanes::Rows, WalkLayout::TreeTables, true, 1, block});
    if (few || block > kMostRowsOneByOne)
      for (const bool coded : {false, true})
        add({Lanes::Rows, WalkLayout::Sparse, coded, few ? 64u : 128u, block});
  }
  return walks;
}

}  // namespace forestvm::scheduler
