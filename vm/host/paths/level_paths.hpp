// The paths of a program in the form in which contributions of a few rows are computed from them: see level_walk.hpp.
// In: LoadedPaths without this form. Out: bundles of trees, whose splits are ordered level by level and lie in the lanes
// of vectors.
//
// A bundle is a sequence of lines:
//   - a LevelBundle;
//   - for each point, the weights of the point in the trees, a tree in each lane;
//   - for each vector from the roots down, a LevelVector, IfAway, and for each point PointLeft and PointRight;
//   - for each vector from the leaves up, IfLeft, IfRight, FirstLeft, FirstRight, LeftValue, RightValue, and for each
//     point PointSlope, all of which SplitConstants documents;
//   - for each split of each tree, in the order in which PathWalk leaves them, a LevelSum.
//
// All splits are computed alike. Those that are not repeated have a slope of 1. Those of two leaves get the leaves 1 and
// 0, because their other constants include the leaves. Trees with fewer points than the bundle have points of weight 0.
// Numbers are those of PathWalk's but for signs of zeros, which sums that begin with 0 do not show.
#pragma once

#include <cstdint>

namespace forestvm::host {

struct LoadedPaths;

struct alignas(64) LevelBundle {
  std::uint32_t vectors;  ///< Vectors of splits; the first one has the roots.
  std::uint32_t points;   ///< Points besides t = 0, the most of the trees.
  std::uint32_t splits;   ///< Splits of all trees.
};

/// What a row is compared with at the splits of a vector. A vector has 16 lanes, or 8 where numbers are float64. Lanes
/// without a split have no children.
struct alignas(64) LevelVector {
  static constexpr unsigned kMostLanes = 16;

  std::uint16_t column[kMostLanes];  ///< PathSplit::column
  std::uint8_t code[kMostLanes];     ///< PathSplit::code
  /// The number of the split's feature among the different features on the way to it.
  std::uint8_t bit[kMostLanes];
  std::uint32_t next;   ///< The slot of the first child that is a split. Children on the left come first.
  std::uint16_t left;   ///< A bit for each lane: 1 if the left child is a split.
  std::uint16_t right;  ///< A bit for each lane: 1 if the right child is a split.
};

/// Where a split's contribution is and to which sum it is added.
struct LevelSum {
  std::uint16_t slot;  ///< The split's number: lanes times the number of its vector, plus its lane.
  std::uint16_t sum;   ///< PathSplit::sum
};

/// Adds this form to the paths, unless a tree has too many splits, or a program too many columns or features.
void add_levels(LoadedPaths& paths);

}  // namespace forestvm::host
