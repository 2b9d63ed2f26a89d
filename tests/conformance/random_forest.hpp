// Small random forests and rows that look for trouble: chains, single leaves, oblivious trees, shared and
// denormal thresholds, sets of categories, node numbers in any order with unused slots between them, many
// features or classes; rows on the thresholds, NaN, infinities, zeros.
#pragma once

#include <vector>

#include <forestvm/model.hpp>

#include "dice.hpp"

namespace forestvm::test {

struct ForestWishes {
  std::size_t max_trees = 20;
  std::uint32_t max_depth = 12;
  bool integer_leaves = false;  ///< leaves, weights and bases whose sums are exact in any order
  unsigned oblivious = 0;       ///< percent of the trees whose levels make one test each, and up to 8 deep
  unsigned leaf_wise = 0;       ///< percent of the trees that are deep and of 50 to 256 leaves
  unsigned float64 = 0;         ///< percent of the forests whose leaves and sums are float64
  unsigned categories = 25;     ///< percent of the forests some of whose splits are categorical
};

Model random_forest(Dice& dice, const ForestWishes& wishes);

/// Row-major.
std::vector<float> random_rows(Dice& dice, const Model& model, std::size_t count);

/// At least the magnitude of every partial sum of a row.
double largest_sum(const Model& model);

}  // namespace forestvm::test
