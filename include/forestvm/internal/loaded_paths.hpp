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
//
// Implemented by vm/call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/core/path_data.hpp>
#include <forestvm/core/path_steps.hpp>
#include <forestvm/program.hpp>

namespace forestvm {

/// Two features that interact, by the numbers of their totals.
struct TotalPair {
  std::uint32_t first;
  std::uint32_t second;
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
};

}  // namespace forestvm
