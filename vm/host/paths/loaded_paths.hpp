// The paths of a program in the form in which contributions and interactions are computed from them. In: the sections
// explained_trees and paths. Out: for each tree a list of steps, and the constants that they take. The sections of
// leaves whose contributions are looked up (see PatternLeaf) are used as they are.
//
// Contributions are Shapley values of a game in which a feature that does not take part sends rows both ways at a
// split, by the shares of the training rows. Let every feature take part with the chance t. With z, the share of a
// split's left child, o, which is 1 where the row goes left, and Z and O, the products of both over the splits of the
// same feature above it on the way, a row goes left with the chance
//
//   f(t) = (Z z (1 - t) + O o t) / (Z (1 - t) + O t),      z where O = 0.
//
// P, the chance to come to a split, is the product of these from the root down, and S, the mean of the leaves below it,
// the sum S(right) + f (S(left) - S(right)) from the leaves up. A feature's contribution is the sum over its splits of
//
//   integral of P f' (S(left) - S(right)) from t = 0 to 1,      f' = O (o - z) Z / (Z (1 - t) + O t)^2.
//
// The sum of these functions is a polynomial of a degree below the number d of different features on a way, so
// Gauss-Radau quadrature with the point t = 0 and d / 2 further points (rounded down) is exact. At t = 0 nothing but o
// and O depends on the row. All factors lie between 0 and 1, so rounding errors do not grow along a way, except at
// splits with the code kAlwaysLeft, whose share may be 2. Divisions are done once, when a program is loaded.
//
// The interaction of two features is half of the sum, over the splits of either and the nearest ones of the other above
// them, of
//
//   integral of P f' (S(left) - S(right)) h from t = 0 to 1,    h = (O - Z) / (Z (1 - t) + O t),
//
// where Z and O are the products up to the other feature's split, and include the branch that the way takes there: h is
// the derivative of the logarithm of the chance to pass the other feature's splits. Where O = 0 it is -1 / (1 - t),
// whatever the feature. So a pair needs only the constants of its branch where O = 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/program.hpp>

#include "vm/host/lines.hpp"

namespace forestvm::host {

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
  std::size_t first_line = 0;  ///< Index in LoadedPaths::levels of the first chunk.
  std::uint32_t chunks = 0;    ///< Chunks of its trees: see level_paths.hpp.
};

/// Two features that interact, by the numbers of their totals.
struct TotalPair {
  std::uint32_t first;
  std::uint32_t second;
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

struct LoadedPaths {
  LoadedPaths() = default;
  explicit LoadedPaths(const Program& program);

  std::vector<PathStep> steps;
  std::vector<PathSplit> splits;  ///< Tree by tree, in preorder.
  /// The constants, unless `wide`. Behind them are two numbers, because those of a point are read in fours.
  std::vector<float> singles;
  std::vector<double> doubles;  ///< The constants if `wide`, and two numbers.
  std::vector<PathPair> pairs;  ///< The features above each split, split by split; none without interactions.
  std::vector<std::uint32_t>
      pair_ends;  ///< The end of each split's pairs, counted from its tree's first pair.
  std::vector<PathTree> trees;
  std::vector<PathBatch> batches;
  std::vector<std::uint32_t> totals;  ///< For each sum of each batch, the number of its total.
  /// The features that have a total, output by output, each output's ascending.
  std::vector<std::uint32_t> features;
  std::vector<TotalPair> total_pairs;  ///< The two features of each total of a pair, output by output.
  std::vector<PathOutput> outputs;
  /// The sections of leaves whose contributions are looked up, in a program that compares rows with a background.
  std::span<const PatternLeaf> pattern_leaves;
  std::span<const PatternTest> pattern_tests;
  std::span<const double> pattern_numbers;
  /// True if sums are computed in float64: scores are float64, or constants of interactions could exceed float32.
  bool wide = false;
  bool interactions = false;  ///< True if the program gives interactions.

  std::size_t most_depth = 0;   ///< Most splits on a way to a leaf.
  std::size_t most_splits = 0;  ///< Most splits of a tree.
  std::size_t most_levels = 0;  ///< Most splits on a way times points.
  std::size_t most_points = 0;  ///< Most points of a tree.
  std::size_t most_sums = 0;    ///< Most sums of a batch.
  std::size_t most_totals = 0;  ///< Most totals of an output.

  /// The trees in the form for a few rows; empty if the target does not use it: see level_paths.hpp.
  std::vector<Line> levels;
  std::size_t level_vectors = 0;    ///< Most vectors of a bundle, and one more.
  std::size_t level_points = 0;     ///< Most of these vectors times points.
  std::size_t level_slots = 0;      ///< Most slots of a chunk.
  std::uint32_t level_columns = 0;  ///< Columns of codes that are compared.
};

}  // namespace forestvm::host
