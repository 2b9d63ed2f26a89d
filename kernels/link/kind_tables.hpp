// The program's tables on the device for outputs other than scores: of single trees, of stages, of how sure a forest is,
// and contributions of each kind. Only the kernel of kinds reads them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/attributions.hpp>
#include <forestvm/core/early_stop.hpp>
#include <forestvm/core/leaf_lists.hpp>
#include <forestvm/core/path_steps.hpp>
#include <forestvm/core/platform.hpp>
#include <forestvm/core/transform.hpp>
#include <forestvm/core/uncertainty.hpp>

namespace forestvm::kernels {

/// Most threads of a block of the kernel of kinds, so that a thread may have many registers.
inline constexpr std::uint32_t kKindThreads = 128;

/// Names the parts of an explain instruction, of which a launch runs one.
enum class ExplainPart : std::uint8_t {
  SumInShared,  ///< Adds the contributions of each batch's trees. What a thread keeps of a tree is in shared memory.
  SumInGlobal,  ///< Does what SumInShared does, in global memory: a block has too little shared memory.
  Write,        ///< Adds the batches' sums, and writes them and the expected scores to the output.
};

/// The bytes that a thread keeps of a tree: P and S of left and of right children, for each depth and point, and how
/// its row chooses constants at each depth.
FVM_HOST_DEVICE constexpr std::size_t path_bytes(std::size_t levels, std::size_t depth, bool wide) {
  return 2 * levels * (wide ? sizeof(double) : sizeof(float)) + depth;
}

struct KindTables {
  const std::uint32_t* round_begins;  ///< The program's section.
  /// ensemble_factor() for each number of rounds up to that of the model, in programs with virtual ensembles.
  const float* ensemble_factors;
  UncertaintyRule uncertainty;
  EarlyStopRule early_stop;
  ClassRule class_rule;

  // The tables of LoadedPaths.
  const PathStep* steps;
  const PathSplit* splits;
  const std::uint16_t* above_depths;  ///< For each split, the number of splits above its PathSplit::above.
  const float* singles;               ///< The constants, unless `wide`.
  const double* doubles;              ///< The constants if `wide`.
  const PathTree* trees;
  const PathBatch* batches;
  const double* expected;  ///< PathOutput::expected of each output
  /// For feature f of output k, the sums that belong to it: those numbered terms[i], for i from
  /// term_begins[k * num_features + f] on and before the number that follows. The sums of batches are numbered one
  /// after the other.
  const std::uint32_t* term_begins;
  const std::uint32_t* terms;
  std::uint32_t batch_count;
  std::uint32_t sum_count;  ///< Sums of all batches.
  std::uint32_t levels;     ///< LoadedPaths::most_levels
  std::uint32_t depth;      ///< LoadedPaths::most_depth
  std::uint32_t num_features;
  std::uint32_t per_tree;  ///< explained_per_tree() of the program
  bool wide;

  // The program's sections of approximate contributions.
  const NumberedLeaves* attributed_trees;
  const std::uint32_t* attributed_leaves;
  const Attribution* attributions;
  const double* attribution_base;
  bool wide_scores;  ///< True if scores are float64.
};

}  // namespace forestvm::kernels
