// The paths of a program in the form in which contributions of a few rows are computed from them: see level_walk.hpp.
// In: LoadedPaths without this form. Out: chunks of consecutive trees, those of a batch before those of the next.
//
// A chunk has its trees in bundles, each of trees that have equally many points. The splits of a bundle are ordered
// level by level and lie in the lanes of vectors. Children of a vector follow those of the one before. A chunk is these
// lines:
//   - a LevelChunk;
//   - its bundles;
//   - for each split of each tree, in the order in which PathWalk leaves them, a LevelSum.
// A bundle is:
//   - a LevelBundle;
//   - for each point, the weights of the point in the trees, a tree in each lane;
//   - for each vector from the roots down, a LevelVector, PointAway, and for each point PointLeft and PointRight;
//   - for each vector from the leaves up, IfLeft, IfRight, FirstLeft, FirstRight, LeftValue, RightValue, and for each
//     point PointSlope. SplitConstants says what they are.
//
// All splits are computed alike. Those that are not repeated have a slope of 1. Those of two leaves get the leaves 1
// and 0, because their other constants include the leaves. So numbers are PathWalk's but for the signs of zeros,
// which sums that begin with 0 do not show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <forestvm/internal/loaded_paths.hpp>

#include "vm/host/lines.hpp"

namespace forestvm::host {

struct alignas(64) LevelChunk {
  std::uint32_t bundles;
  std::uint32_t splits;  ///< Splits of all trees.
};

struct alignas(64) LevelBundle {
  std::uint32_t vectors;  ///< Vectors of splits; the first one has the roots.
  std::uint32_t points;   ///< Points besides t = 0, of each tree.
};

/// The codes with which a row is compared at the splits of a vector. A vector has 16 lanes, or 8 where numbers are
/// float64. Lanes without a split have no children.
struct alignas(64) LevelVector {
  static constexpr unsigned kMostLanes = 16;

  std::uint16_t column[kMostLanes];  ///< PathSplit::column
  std::uint8_t code[kMostLanes];     ///< PathSplit::code
  /// The number of the split's feature among the different features on the way to it.
  std::uint8_t bit[kMostLanes];
  std::uint32_t
      next;  ///< The slot in the bundle of the first child that is a split. Children on the left come first.
  std::uint16_t left;   ///< A bit for each lane: 1 if the left child is a split.
  std::uint16_t right;  ///< A bit for each lane: 1 if the right child is a split.
};

/// Where a split's contribution is and to which sum it is added.
struct LevelSum {
  /// The split's slot in the chunk: lanes times the number of its vector, plus its lane.
  std::uint16_t slot;
  std::uint16_t sum;  ///< PathSplit::sum
};

/// The chunks of a batch's trees.
struct LevelChunks {
  std::size_t first_line;  ///< Index in HostPaths::levels of the first chunk.
  std::uint32_t count;
};

/// Paths as the host reads them: also in this form, where the target uses it.
struct HostPaths : LoadedPaths {
  using LoadedPaths::LoadedPaths;

  std::vector<Line> levels;               ///< Empty if the target does not use it.
  std::vector<LevelChunks> level_chunks;  ///< For each batch.
  std::size_t level_vectors = 0;          ///< Most vectors of a bundle, and one more.
  std::size_t level_points = 0;           ///< Most of these vectors times points.
  std::size_t level_slots = 0;            ///< Most slots of a chunk.
  std::uint32_t level_columns = 0;        ///< Columns of codes that are compared.
};

/// Adds this form to the paths, unless a tree has too many splits, or a program too many columns or features.
void add_levels(HostPaths& paths);

}  // namespace forestvm::host
