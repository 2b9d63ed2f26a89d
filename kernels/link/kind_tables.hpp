// The program's tables on the device for outputs other than scores: of single trees, of stages, of how sure a forest
// is, contributions of each kind, and quantiles. Only the kernel of kinds reads them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/attributions.hpp>
#include <forestvm/core/early_stop.hpp>
#include <forestvm/core/leaf_lists.hpp>
#include <forestvm/core/path_data.hpp>
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

/// The bytes that a thread keeps of a tree: P and S of left and of right children, for each depth and point, for
/// interactions what a split adds to the integral at each point, and how its row chooses constants at each depth.
FVM_HOST_DEVICE constexpr std::size_t path_bytes(std::size_t levels, std::size_t points, std::size_t depth,
                                                 bool wide) {
  return (2 * levels + points) * (wide ? sizeof(double) : sizeof(float)) + depth;
}

/// A feature with which another one interacts, and the number of the pair.
struct InteractingFeature {
  std::uint32_t feature, pair;
};

/// A leaf whose contributions are looked up (see PatternLeaf), and where its tests and numbers begin.
struct LookedUpLeaf {
  std::uint64_t first_number;
  std::uint32_t first_test, end_test;
  std::uint64_t features;
};

/// A leaf that contributes to a feature, and the feature's bit in its patterns.
struct LookedUpFeature {
  std::uint32_t leaf, bit;
};

struct KindTables {
  const std::uint32_t* round_begins;  ///< The program's section.
  /// ensemble_factor() for each number of rounds up to that of the model, in programs with virtual ensembles.
  const double* ensemble_factors;
  UncertaintyRule uncertainty;
  EarlyStopRule early_stop;
  ClassRule class_rule;

  // The tables of LoadedPaths.
  const PathStep* steps;
  const PathSplit* splits;
  const std::uint16_t* above_depths;  ///< For each split, the number of splits above its PathSplit::above.
  const float* singles;               ///< The constants, unless `wide`.
  const double* doubles;              ///< The constants if `wide`.
  const PathPair* pairs;
  const std::uint32_t* pair_ends;
  const std::uint16_t* pair_depths;  ///< For each pair, the number of splits above PathPair::above.
  const PathTree* trees;
  const PathBatch* batches;
  const double* expected;  ///< PathOutput::expected of each output
  /// For feature f of output k, the sums that belong to it: those numbered terms[i], for i from
  /// term_begins[k * num_features + f] on and before the number that follows. The sums of batches are numbered one
  /// after the other.
  const std::uint32_t* term_begins;
  const std::uint32_t* terms;
  /// The features with which feature f of output k interacts, in the order of the output's pairs: those from
  /// interacting_begins[k * num_features + f] on and before the number that follows.
  const std::uint32_t* interacting_begins;
  const InteractingFeature* interacting;
  /// The sums of pair p of features: those numbered pair_terms[i], for i from pair_begins[p] on and before the number
  /// that follows. The pairs of an output follow those of the output before.
  const std::uint32_t* pair_begins;
  const std::uint32_t* pair_terms;
  // Contributions that are looked up, in programs that compare rows with a background.
  const PatternTest* pattern_tests;
  const double* pattern_numbers;
  const LookedUpLeaf* looked_up_leaves;
  /// The leaves that contribute to feature f of output k: those from looked_up_begins[k * num_features + f] on and
  /// before the number that follows, in the program's order.
  const std::uint32_t* looked_up_begins;
  const LookedUpFeature* looked_up;
  std::uint32_t batch_count;
  std::uint32_t sum_count;  ///< Sums of all batches.
  std::uint32_t levels;     ///< LoadedPaths::most_levels
  std::uint32_t points;     ///< LoadedPaths::most_points in programs with interactions, otherwise 0
  std::uint32_t depth;      ///< LoadedPaths::most_depth
  std::uint32_t num_features;
  std::uint32_t per_tree;  ///< explained_per_tree() of the program
  bool wide;

  // The program's sections of approximate contributions.
  const NumberedLeaves* attributed_trees;
  const std::uint32_t* attributed_leaves;
  const Attribution* attributions;
  const double* attribution_base;

  // The program's sections of quantiles.
  const NumberedLeaves* sampled_trees;
  const std::uint32_t* sampled_leaves;
  const std::uint32_t* sample_targets;
  const double* targets;
  std::uint32_t target_count;
  bool wide_scores;  ///< True if scores are float64.
};

}  // namespace forestvm::kernels
