// The steps in which contributions and interactions are computed from paths, and their constants: the records of
// LoadedPaths, whose header says what is computed. Backends derive them from a program when they load it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forestvm {

/// The ways in which a step changes P, the chances to come to a split at each point, and S, the means below the split.
enum class PathMotion : std::uint8_t {
  Down,  ///< Gives P to those children of the split that are splits.
  Up,    ///< Adds the split's part to its feature's sums, and computes its S from the S of its children.
  Both,  ///< Adds the part of a split of two leaves to its feature's sums, and computes its S.
  Fork,  ///< Does the steps that follow, of a split whose children are splits of two leaves, or one of them a leaf.
};

struct PathStep {
  std::uint32_t split;  ///< Index of the split in the tree.
  std::uint16_t depth;  ///< Number of splits above the split.
  PathMotion motion;
  std::uint8_t is_right;  ///< 1 if the split is the right child of the one above.
};
static_assert(sizeof(PathStep) == 8);

/// The value of PathSplit::above if no split above tests the same feature.
inline constexpr std::uint32_t kNoneAbove = 0;

struct PathSplit {
  std::uint32_t column;     ///< Column of codes.
  std::uint32_t sum;        ///< Index of the feature's sums in the tree's batch.
  std::uint32_t constants;  ///< Index of the split's constants among the tree's: see SplitConstants.
  /// Number of the nearest split above with the same feature, counted from 1 in the tree; kNoneAbove if there is none.
  std::uint32_t above;
  std::uint8_t code;   ///< Rows whose code is above this one go right.
  std::uint8_t flags;  ///< Bits: kAboveLeft, kLeftLeaf, kRightLeaf, kFourConstants.
};
static_assert(sizeof(PathSplit) == 20);

inline constexpr std::uint8_t kAboveLeft = 1;      ///< The way goes left at the split `above`.
inline constexpr std::uint8_t kLeftLeaf = 2;       ///< The left child is a leaf.
inline constexpr std::uint8_t kRightLeaf = 4;      ///< The right child is a leaf.
inline constexpr std::uint8_t kFourConstants = 8;  ///< The split has four constants for each point.

/// The indices of a split's constants. First come the constants of the split, then two or four for each point: splits
/// with kFourConstants have four. These are repeated splits, which are below another that tests the same feature, and
/// all splits of a fork that has a repeated one. The constants of a tree's splits follow one another.
struct SplitConstants {
  enum : unsigned {
    IfLeft,   ///< 1 - z, times S(left) - S(right) if both are leaves: the factor of the integral where o = 1.
    IfRight,  ///< -z, times S(left) - S(right) if both are leaves: the factor where o = 0.
    IfGone,   ///< 0: the factor where O = 0.
    FirstLeft,   ///< Term of the point t = 0 in the integral where o = 1.
    FirstRight,  ///< Term of the point t = 0 in the integral where o = 0.
    FirstGone,   ///< 0: the term where O = 0.
    LeftValue,   ///< Value of the left child if it is a leaf.
    RightValue,  ///< Value of the right child if it is a leaf.
    Count,
    // The constants of each point:
    PointLeft = 0,   ///< f where o = O = 1; S if both children are leaves.
    PointRight = 1,  ///< f where o = 0 and O = 1; S if both children are leaves.
    PointAway = 2,   ///< f where O = 0; S if both children are leaves.
    PointSlope = 3,  ///< Z / (Z (1 - t) + t)^2; 1 in splits that are not repeated.
    TwoConstants = 2,
    FourConstants = 4,
  };
};

/// A feature that is tested above a split, which therefore interacts with the split's feature.
struct PathPair {
  std::uint32_t sum;  ///< Index of the two features' sums in the tree's batch.
  std::uint32_t
      constants;  ///< Index among the tree's constants of h where O = 1, at t = 0 and at the tree's points.
  std::uint32_t above;  ///< Index in the tree of the nearest split above that tests the feature.
  bool right;           ///< True if the way goes right there.
};
static_assert(sizeof(PathPair) == 16);

struct PathTree {
  std::size_t first_step;
  std::size_t step_count;
  std::size_t first_split;
  std::size_t split_count;
  /// Its constants begin with the weights of its points. For interactions, h where O = 0 follows, at t = 0 and at the
  /// points.
  std::size_t first_constant;
  std::size_t first_pair;  ///< Index in LoadedPaths::pairs of the first pair of the tree's first split.
  std::uint32_t points;    ///< Points besides t = 0.
  std::uint32_t number;    ///< Index among the program's explained trees.
};

/// Trees whose contributions are added up in the type of the scores, before they are added to float64 totals.
struct PathBatch {
  std::size_t first_tree;
  std::size_t end_tree;
  std::size_t first_total;  ///< Index in LoadedPaths::totals of the number of the first sum's total.
  std::uint32_t sums;       ///< Features that its trees test.
  /// Pairs of features that interact in its trees; their sums follow the sums of the features.
  std::uint32_t pair_sums;
};

/// The trees of an output.
struct PathOutput {
  std::size_t first_batch;
  std::size_t end_batch;
  std::size_t first_feature;  ///< Index in LoadedPaths::features.
  std::size_t first_pair;     ///< Index in LoadedPaths::total_pairs.
  std::uint32_t features;     ///< Features that its trees test, each of which has a total.
  std::uint32_t pairs;  ///< Pairs of them that interact; their totals follow the totals of the features.
  double expected;      ///< Expected score: the base score and the means of all trees.
  double mean;          ///< Mean of all trees without the base score, which the margins of a call replace.
};

}  // namespace forestvm
