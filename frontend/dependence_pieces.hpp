// Finds the values of a feature that a model's tests tell apart, and which of them go left at each test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/partial_dependence.hpp>

namespace forestvm::frontend {

/// Ascending runs [begin, end) of points, which do not touch.
using PointRuns = std::vector<std::pair<std::size_t, std::size_t>>;

/// Returns the points that are in both lists of runs.
PointRuns both_of(const PointRuns& one, const PointRuns& other);

/// Returns the points below `count` that are not in `runs`.
PointRuns others_of(const PointRuns& runs, std::size_t count);

/// A split that tests the feature, and its tree.
struct FeatureTest {
  const Tree* tree;
  const Node* node;
};

/// The points at which a feature is looked at: its pieces, then the missing value.
struct FeaturePoints {
  bool categories = false;
  std::vector<DependencePiece> pieces;  ///< Their means are 0.

  std::size_t count() const { return pieces.size() + 1; }

  /// Returns the points that go left at a split of the feature.
  PointRuns left_of(const Model& model, const FeatureTest& test) const;
};

/// Finds the points of a feature from all splits that test it.
FeaturePoints points_of(const Model& model, const std::vector<FeatureTest>& tests);

}  // namespace forestvm::frontend
