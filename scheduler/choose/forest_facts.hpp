// The facts about a model by which a schedule for the host is chosen.
#pragma once

#include <cstdint>

#include <forestvm/internal/statistics.hpp>
#include <forestvm/model.hpp>

namespace forestvm::scheduler {

struct ForestFacts {
  ForestStatistics forest;
  std::uint64_t trees = 0;
  std::uint64_t most_leaves = 0;  ///< Leaves of the largest tree.
  std::uint64_t columns = 0;      ///< The most columns of rank codes that a row can have.
  std::uint32_t features = 0;     ///< Values of a row.
  std::uint32_t outputs = 0;
  /// The mean number of tests on a row's way through a tree: by the model's training rows if it says how many came to
  /// its leaves, otherwise as if all leaves of a tree were equally likely.
  double mean_steps = 0;
  bool fits_tables = false;  ///< Every tree has few enough leaves for the layout `tables`.
  bool suits_top_tables =
      false;                  ///< Some tree does not fit `tables`, and all are narrow enough for `topTables`.
  bool knows_covers = false;  ///< The model says how many training rows came to the nodes.
  bool is_float64 = false;    ///< The model compares in float64.
  bool has_vectors = false;   ///< Leaves are vectors or linear functions.
  bool has_made_columns = false;  ///< Some columns are looked up or computed from a row's values.
  bool oblivious = false;         ///< In each tree, all nodes of a level make the same test.

  bool has_categories() const { return forest.category_splits != 0; }
  /// Returns the steps of a row through all trees, if each takes as many as its deepest leaf needs.
  double steps() const { return forest.mean_depth * static_cast<double>(trees); }
  /// Returns the depth of the deepest tree, divided by the mean depth of the trees.
  double padding() const { return forest.max_depth / (forest.mean_depth < 1 ? 1 : forest.mean_depth); }
  double mean_leaves() const {
    return static_cast<double>(forest.leaves) / static_cast<double>(trees == 0 ? 1 : trees);
  }
};

ForestFacts facts_of(const Model& model);

}  // namespace forestvm::scheduler
