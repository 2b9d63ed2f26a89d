// Trees and a background -> paths and patterns, from which contributions against the rows of the background are
// computed. In the game whose players are features, those that do not take part have the values of a background row.
//
// A leaf is then reached if the row passes the tests of all features that take part, and the background row those of
// all others. For a leaf of value v with d features on the way to it, let g(S) be the share of background rows that
// pass all tests of the features outside of S. A row that passes the tests of the features X gives a coalition S
// the worth v g(S) if S is part of X, otherwise 0. By Hart and Mas-Colell's potential, feature i contributes
//
//   v (Q(d, X) - Q(d - 1, X without i) - g({}) / d),
//   Q(n, X) = sum over the coalitions S in X but {} of (|S| - 1)! (n - |S|)! / n! g(S).
//
// So two tables of 2^d numbers say what the leaf contributes, however many rows the background has. The same
// contribution can be computed from paths whose shares, 0 or 1, describe one background row. Paths are used for leaves
// with more than kMaxPatternFeatures features, and for trees in which the background's rows take few different paths.
#include <algorithm>
#include <bit>
#include <vector>

#include <forestvm/background.hpp>
#include <forestvm/internal/formatted.hpp>

#include "scheduler/compilation.hpp"
#include "scheduler/passes/rooted_tree.hpp"

namespace forestvm::scheduler {
namespace {

/// The costs of a leaf whose contributions are looked up, and of each feature on the way to it, in units of the cost of
/// a split that is walked for one way of the background (about 0.5 ns a row on AVX-512).
constexpr std::size_t kLeafCost = 1, kFeatureCost = 1;

/// The most bytes of paths, with the constants that are derived from them, and of patterns.
constexpr std::size_t kMaxBytes = std::size_t{1} << 30;
constexpr std::size_t kNodeBytes = 120;

class BackgroundComparer : RootedTree {
 public:
  BackgroundComparer(const Model& model, const Background& background, ExplainedForest& to)
      : RootedTree(model),
        background_(background),
        rows_(background.rows()),
        to_(to),
        patterns_(kMaxPathSplits + 1) {
    patterns_[0].assign(rows_, 0);
  }

  Result<void> add(std::size_t number) {
    take(number);
    splits_.assign(tree_.nodes.size(), {});
    leaves_.assign(tree_.nodes.size(), {});
    split_order_.clear();
    lookup_cost_ = 0;
    FVM_TRY(measure(0));
    choose_leaves();
    FVM_TRY(look_up(0, 0));
    std::vector<std::uint64_t> all((rows_ + 63) / 64, ~std::uint64_t{0});
    all.back() >>= (64 - rows_ % 64) % 64;
    count_reached(0, all);
    for (std::uint32_t k = 0; k < tree_.leaf_width; ++k) FVM_TRY(add_output(k));
    return {};
  }

 private:
  struct Split {
    std::uint32_t feature;
    std::uint32_t bit;  ///< Number of its feature among those on the way.
    bool first;         ///< True if no split above has its feature.
    bool walked;        ///< True if some leaf below is not looked up.
  };
  struct LeafFacts {
    std::uint32_t features;  ///< Features on the way.
    bool walked;             ///< True if it is not looked up.
    std::size_t reached;     ///< Background rows that come to it.
  };

  const Node& node(std::size_t n) const { return tree_.nodes[n]; }
  bool is_leaf(std::size_t n) const { return node(n).kind == NodeKind::Leaf; }
  std::size_t left(std::size_t n) const { return static_cast<std::size_t>(node(n).left); }
  std::size_t right(std::size_t n) const { return static_cast<std::size_t>(node(n).right); }
  /// Returns the background rows that go left at a split.
  Background::Side left_rows(std::size_t n) const {
    const Node& source = model_.trees[number_].nodes[sources_[n]];
    return background_.side(number_, sources_[n], source.left < source.right);
  }

  /// Finds the features on the way to each split and leaf, and what it costs to look leaves up.
  Result<void> measure(std::size_t n) {
    if (is_leaf(n)) {
      leaves_[n].features = static_cast<std::uint32_t>(features_.size());
      lookup_cost_ += kLeafCost + kFeatureCost * features_.size();
      return {};
    }
    FVM_ASSIGN(const std::uint32_t feature, feature_of(n));
    way_.push_back(feature);
    auto checked = check_way(n, way_);
    const auto at = std::ranges::find(features_, feature);
    const auto bit = static_cast<std::uint32_t>(at - features_.begin());
    const bool first = at == features_.end();
    splits_[n] = {feature, bit, first, false};
    split_order_.push_back(n);
    if (first) features_.push_back(feature);
    if (checked) checked = measure(left(n));
    if (checked) checked = measure(right(n));
    if (first) features_.pop_back();
    way_.pop_back();
    return checked;
  }

  /// Groups the background rows by the ways that they take at some splits. Stops when there are more than `most`.
  template <class Counts>
  void group_rows(std::size_t most, const Counts& counts) {
    groups_.assign(rows_, 0);
    group_count_ = 1;
    std::vector<std::uint32_t> next;
    for (const std::size_t n : split_order_) {
      if (!counts(n)) continue;
      if (group_count_ > most) return;
      next.assign(std::size_t{2} * group_count_, UINT32_MAX);
      group_count_ = 0;
      const Background::Side left_side = left_rows(n);
      for (std::size_t row = 0; row < rows_; ++row) {
        std::uint32_t& group = next[std::size_t{2} * groups_[row] + (left_side.has(row) ? 1 : 0)];
        if (group == UINT32_MAX) group = group_count_++;
        groups_[row] = group;
      }
    }
  }

  /// Decides which leaves are looked up. The others are walked, for each way of the background.
  void choose_leaves() {
    if (split_order_.empty()) return;
    const std::size_t most = lookup_cost_ / split_order_.size();
    group_rows(most, [](std::size_t) { return true; });
    const bool all = group_count_ <= most;
    mark_walked(0, all);
    if (!all) group_rows(rows_, [&](std::size_t n) { return splits_[n].walked; });
  }

  bool mark_walked(std::size_t n, bool all) {
    if (is_leaf(n)) return leaves_[n].walked = all || leaves_[n].features > kMaxPatternFeatures;
    const bool below_left = mark_walked(left(n), all), below_right = mark_walked(right(n), all);
    return splits_[n].walked = below_left || below_right;
  }

  /// Appends the leaves below a node that are looked up. patterns_[depth] has the pattern of each background row.
  Result<void> look_up(std::size_t n, std::size_t depth) {
    if (is_leaf(n)) return leaves_[n].walked || depth == 0 ? Result<void>() : add_leaf(n, patterns_[depth]);
    const Split& split = splits_[n];
    if (split.bit >= kMaxPatternFeatures) return {};
    const Background::Side left_side = left_rows(n);
    for (const bool goes_left : {true, false}) {
      pass(split, left_side, goes_left, patterns_[depth], patterns_[depth + 1]);
      steps_.push_back(
          {{number_, sources_[n], false}, split.feature, static_cast<std::uint8_t>(split.bit), goes_left});
      auto added = look_up(goes_left ? left(n) : right(n), depth + 1);
      steps_.pop_back();
      FVM_TRY(std::move(added));
    }
    return {};
  }

  /// Sets the patterns of all rows below a split from those above it.
  static void pass(const Split& split, const Background::Side& left_side, bool goes_left,
                   const std::vector<std::uint16_t>& above, std::vector<std::uint16_t>& below) {
    below.resize(above.size());
    for (std::size_t begin = 0; begin < above.size(); begin += 64) {
      std::uint64_t passing = goes_left ? left_side.word(begin / 64) : ~left_side.word(begin / 64);
      for (std::size_t row = begin; row < std::min(begin + 64, above.size()); ++row, passing >>= 1) {
        const unsigned passes = passing & 1, pattern = above[row];
        below[row] = static_cast<std::uint16_t>(split.first ? pattern | passes << split.bit
                                                            : pattern & ~((passes ^ 1) << split.bit));
      }
    }
  }

  /// Appends a leaf that is looked up.
  Result<void> add_leaf(std::size_t n, const std::vector<std::uint16_t>& patterns) {
    const std::uint32_t features = leaves_[n].features;
    const std::size_t count = std::size_t{1} << features;
    std::vector<std::uint32_t> counts(count);  // number of background rows with each pattern
    for (const std::uint16_t pattern : patterns) ++counts[pattern];
    std::vector<long double> shares(counts.begin(), counts.end());
    // Adds to each pattern X the rows whose patterns contain it: shares[X] becomes g of the features that X lacks.
    for (std::size_t bit = 1; bit < count; bit *= 2)
      for (std::size_t i = 0; i < count; ++i)
        if ((i & bit) == 0) shares[i] += shares[i | bit];
    for (long double& share : shares) share /= static_cast<long double>(rows_);
    std::vector<long double> with = potential(shares, features), without = potential(shares, features - 1);
    for (long double& number : with) number -= shares[count - 1] / static_cast<long double>(features);
    for (std::uint32_t k = 0; k < tree_.leaf_width; ++k) {
      FVM_ASSIGN(const double value, weighted_output_of(n, k));
      if (value == 0) continue;
      to_.leaves.push_back({output(k), static_cast<std::uint32_t>(steps_.size()), features});
      to_.steps.insert(to_.steps.end(), steps_.begin(), steps_.end());
      for (const auto* const table : {&with, &without})
        for (const long double number : *table)
          to_.numbers.push_back(static_cast<double>(static_cast<long double>(value) * number));
    }
    return check_size();
  }

  /// Returns Q(players, X) for each X. `shares` has g of all but the features in each set.
  static std::vector<long double> potential(const std::vector<long double>& shares, std::uint32_t players) {
    std::vector<long double> weights(kMaxPatternFeatures + 1);  // (s - 1)! (players - s)! / players!
    long double weight = 1;
    for (std::uint32_t s = 1; s <= players; ++s) {
      weight /= static_cast<long double>(players - s + 1);
      weights[s] = weight;
      weight *= static_cast<long double>(s);
    }
    const std::size_t count = shares.size();
    std::vector<long double> sums(count);
    for (std::size_t i = 1; i < count; ++i)
      sums[i] = weights[static_cast<std::size_t>(std::popcount(i))] * shares[count - 1 - i];
    for (std::size_t bit = 1; bit < count; bit *= 2)
      for (std::size_t i = 0; i < count; ++i)
        if ((i & bit) != 0) sums[i] += sums[i ^ bit];
    return sums;
  }

  void count_reached(std::size_t n, const std::vector<std::uint64_t>& rows) {
    if (is_leaf(n)) {
      for (const std::uint64_t word : rows)
        leaves_[n].reached += static_cast<std::size_t>(std::popcount(word));
      return;
    }
    const Background::Side left_side = left_rows(n);
    std::vector<std::uint64_t> below(rows);
    for (std::size_t i = 0; i < below.size(); ++i) below[i] &= left_side.word(i);
    count_reached(left(n), below);
    for (std::size_t i = 0; i < below.size(); ++i) below[i] = rows[i] & ~left_side.word(i);
    count_reached(right(n), below);
  }

  std::uint32_t output(std::uint32_t k) const { return tree_.leaf_width == 1 ? tree_.output : k; }

  /// Appends a tree of one leaf for the mean over the background, and the paths of each way whose leaves are walked.
  Result<void> add_output(std::uint32_t k) {
    values_.assign(tree_.nodes.size(), 0);
    long double sum = 0;
    for (std::size_t n = 0; n < tree_.nodes.size(); ++n) {
      if (!is_leaf(n)) continue;
      FVM_ASSIGN(values_[n], weighted_output_of(n, k));
      sum += static_cast<long double>(values_[n]) * static_cast<long double>(leaves_[n].reached);
    }
    to_.nodes.push_back({});
    to_.sources.push_back({number_, sources_[0], false});
    to_.trees.push_back({1, output(k), static_cast<double>(sum / static_cast<long double>(rows_))});
    if (!splits_[0].walked) return {};
    std::vector<std::size_t> sizes(group_count_), rows(group_count_);
    for (std::size_t row = 0; row < rows_; ++row) {
      ++sizes[groups_[row]];
      rows[groups_[row]] = row;
    }
    for (std::size_t group = 0; group < group_count_; ++group) {
      const std::size_t first = to_.nodes.size();
      copy(0, rows[group], static_cast<double>(sizes[group]) / static_cast<double>(rows_));
      to_.trees.push_back({static_cast<std::uint32_t>(to_.nodes.size() - first), output(k), 0});
      FVM_TRY(check_size());
    }
    return {};
  }

  /// Appends the paths below a node with the shares of a background row. Leaves that are looked up become 0.
  void copy(std::size_t n, std::size_t row, double share) {
    PathNode path{};
    const bool is_split = !is_leaf(n) && splits_[n].walked;
    if (is_split) {
      path.split = 1;
      path.feature = splits_[n].feature;
      path.number = left_rows(n).has(row) ? 1 - kMinShare : kMinShare;
    } else if (is_leaf(n) && leaves_[n].walked) {
      path.number = values_[n] * share;
    }
    to_.nodes.push_back(path);
    to_.sources.push_back({number_, sources_[n], false});
    if (!is_split) return;
    copy(left(n), row, share);
    copy(right(n), row, share);
  }

  Result<void> check_size() const {
    if (to_.nodes.size() * kNodeBytes + to_.numbers.size() * sizeof(double) <= kMaxBytes) return {};
    return refused(
        formatted("tree {}", number_),
        "the trees up to here take more than {} bytes to be compared with the {} rows of the background; give "
        "fewer rows",
        kMaxBytes, rows_);
  }

  const Background& background_;
  std::size_t rows_;
  ExplainedForest& to_;
  std::vector<std::uint32_t> way_;       ///< features of the splits above
  std::vector<std::uint32_t> features_;  ///< the different ones among them
  std::vector<Split> splits_;            ///< facts about each node that is a split
  std::vector<LeafFacts> leaves_;        ///< facts about each node that is a leaf
  std::vector<std::size_t> split_order_;
  std::size_t lookup_cost_ = 0;
  std::vector<std::uint32_t> groups_;  ///< number of each background row's way
  std::uint32_t group_count_ = 1;
  std::vector<std::vector<std::uint16_t>> patterns_;  ///< by depth: the pattern of each background row
  std::vector<PatternStep> steps_;                    ///< the way to the current node
  std::vector<double> values_;                        ///< what each leaf adds to the current output
};

}  // namespace

Result<void> compare_background(Compilation& compilation) {
  const Background* const background = compilation.options.background.get();
  if (background == nullptr) return {};
  if (compilation.options.interactions)
    return usage("interactions are not computed against a background, only contributions");
  const Model& model = compilation.model;
  FVM_TRY(check_contributions(model));
  if (!background->fits(model)) return usage("the background was made for another model");
  BackgroundComparer comparer(model, *background, compilation.explained);
  for (std::size_t t = 0; t < model.trees.size(); ++t) FVM_TRY(comparer.add(t));
  return {};
}

}  // namespace forestvm::scheduler
