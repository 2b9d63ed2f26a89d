// Statistics of a forest: `forestvm inspect` prints them, and choosing a schedule starts from them.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/model.hpp>
#include <forestvm/program.hpp>

namespace forestvm {

struct ForestShape {
  std::uint64_t nodes = 0;  ///< Splits and leaves that a walk can reach.
  std::uint64_t leaves = 0;
  std::uint64_t category_splits = 0;
  std::uint32_t min_depth = 0;  ///< Least depth of a tree: steps from the root to its deepest leaf.
  std::uint32_t max_depth = 0;
  double mean_depth = 0;
};

ForestShape shape_of(const Model& model);

struct ForestStatistics : ForestShape {
  std::uint32_t features_used = 0;
  std::uint64_t thresholds = 0;         ///< Distinct (feature, threshold) pairs.
  std::uint64_t threshold_columns = 0;  ///< Columns of rank codes for all thresholds of each feature.
  std::uint64_t category_sets = 0;      ///< Distinct (feature, set of categories) pairs.
};

ForestStatistics statistics(const Model& model);

/// Counts the distinct thresholds of each feature that has some.
std::vector<FeatureCount> thresholds_per_feature(const Model& model);

/// Counts the distinct sets of categories of each feature that has some.
std::vector<FeatureCount> category_sets_per_feature(const Model& model);

/// The way in which the reproducible contract sums a model's leaves: in a 64- or 128-bit count of units of 2^unit,
/// or (PerTree, PerTree64) leaf by leaf in the model's order.
struct ReproducibleSums {
  AccumulatorKind kind = AccumulatorKind::PerTree;
  int unit = 0;
};
ReproducibleSums reproducible_sums(const Model& model);

}  // namespace forestvm
