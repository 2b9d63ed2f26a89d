// Small random forests and rows with the cases that are hard: chains, single leaves, oblivious trees, shared
// and denormal thresholds, sets of categories, node numbers in any order with unused slots between them, many
// features or classes; rows on the thresholds, NaN, infinities, zeros.
#pragma once

#include <vector>

#include <forestvm/model.hpp>

#include "dice.hpp"

namespace forestvm::test {

struct ForestOptions {
  std::size_t max_trees = 20;
  std::uint32_t max_depth = 12;
  std::uint32_t max_features = 5000;
  bool integer_leaves = false;  ///< true: sums of leaves, weights and bases are exact in any order
  unsigned oblivious = 0;       ///< percent of the trees that have one test per level, up to 8 levels deep
  unsigned leaf_wise = 0;       ///< percent of the trees that are deep, with 50 to most_leaves leaves
  std::size_t most_leaves = 256;
  unsigned float64 = 0;      ///< percent of the forests with float64 leaves and sums
  unsigned linear = 0;       ///< percent of the forests with float64 scores that have linear leaves
  unsigned categories = 25;  ///< percent of the forests with categorical splits
};

Model random_forest(Dice& dice, const ForestOptions& options);

/// Returns `count` rows, row-major.
std::vector<float> random_rows(Dice& dice, const Model& model, std::size_t count);

/// Returns a bound on the magnitude of every partial sum of a row.
double largest_sum(const Model& model);

}  // namespace forestvm::test
