// See forestvm/internal/loaded_paths.hpp.
#include <forestvm/internal/loaded_paths.hpp>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include <boost/container/static_vector.hpp>

#include <forestvm/internal/calls.hpp>

#include "vm/call/paths/radau.hpp"
#include "vm/call/sorted.hpp"

namespace forestvm {
namespace {

/// The number of trees in a batch if scores are float32. Float32 sums of so few trees are accurate enough to be added
/// to float64 totals.
constexpr std::size_t kBatchTrees = 16;

/// The least WaySplit::taken of a branch for which interactions are computed in float32: one of the branch's constants
/// is about its reciprocal, which float32 must hold.
constexpr double kMinSingle = 0x1p-100;

/// A split on the way from the root to the split that is visited.
struct WaySplit {
  std::uint32_t feature;
  bool left;             ///< True if the way goes to its left child.
  bool repeated;         ///< True if a split below it on the way tests its feature.
  std::uint32_t branch;  ///< Index in WayThrough::branches.
  /// Product of the shares that the way takes at this split and at the splits above that test the same feature.
  double taken;
};

/// A split, with the facts about it that depend on the way from the root.
struct SplitOnWay {
  std::uint32_t node;
  std::uint32_t right;  ///< Node of the right child; the left one follows the split.
  std::uint16_t depth;
  std::uint32_t above;      ///< PathSplit::above
  bool above_left;          ///< True if the way goes left at the split `above`.
  double above_taken;       ///< Z: WaySplit::taken of the split `above`; 1 if there is none.
  double others_taken;      ///< The product of the shares that the way takes at splits of other features.
  std::uint32_t end_other;  ///< End of the split's part of WayThrough::others.
};

/// The nearest split of another feature above a split.
struct OtherSplit {
  std::uint32_t feature;
  std::uint32_t branch;  ///< Index in WayThrough::branches of the branch that the way takes there.
  std::uint32_t split;   ///< Index in WayThrough::splits.
  bool right;
};

/// The nodes of a tree, with the facts about each that do not depend on the way from the root.
struct TreeNodes {
  explicit TreeNodes(std::span<const PathNode> of)
      : nodes(of), ends(of.size()), means(of.size()), heights(of.size()) {
    for (std::size_t n = nodes.size(); n-- > 0;) {
      ends[n] = static_cast<std::uint32_t>(n + 1);
      means[n] = nodes[n].number;
      if (nodes[n].split == 0) continue;
      const std::size_t left = n + 1, right = ends[left];
      ends[n] = ends[right];
      means[n] = nodes[n].number * means[left] + (1 - nodes[n].number) * means[right];
      const int above = std::max(heights[left], heights[right]) + 1;
      heights[n] = static_cast<std::uint8_t>(std::min(above, kTall));
    }
  }

  static constexpr int kTall = 3;  ///< The height that stands for this and all greater ones.

  bool is_leaf(std::size_t node) const { return nodes[node].split == 0; }

  std::span<const PathNode> nodes;
  std::vector<std::uint32_t> ends;    ///< The index after the last node of each node's subtree.
  std::vector<double> means;          ///< The mean of the leaves below each node over the training rows.
  std::vector<std::uint8_t> heights;  ///< The most splits on a way from each node to a leaf, at most kTall.
};

/// The way through a tree: it enters each split, goes through its left subtree, turns to the right one, and leaves.
struct WayThrough {
  /// Lists others and branches only if `lists_others`.
  WayThrough(const TreeNodes& of, bool lists_others) : tree(of), lists_others_(lists_others) {
    if (tree.is_leaf(0)) return;
    splits.reserve(tree.nodes.size() / 2);
    steps.reserve(tree.nodes.size());
    enter(0);
    while (!open.empty()) {
      // The way leads to the child at which the deepest split's direction points.
      const SplitOnWay& split = splits[open.back()];
      const std::uint32_t child = way.back().left ? split.node + 1 : split.right;
      if (!tree.is_leaf(child)) {
        enter(child);
        continue;
      }
      while (!open.empty() && !way.back().left) leave();
      if (open.empty()) break;
      back();
      go(false);
    }
  }

  std::vector<SplitOnWay> splits;
  std::vector<OtherSplit> others;  ///< The features above each split, split by split.
  std::vector<double> branches;    ///< WaySplit::taken of each branch of a split that leads to splits.
  std::vector<PathStep> steps;
  std::uint32_t most_features = 0;  ///< Most different features on a way from the root to a leaf.
  std::size_t most_depth = 0;

 private:
  void enter(std::uint32_t node) {
    const PathNode& tested = tree.nodes[node];
    SplitOnWay split{
        node, tree.ends[node + 1], static_cast<std::uint16_t>(way.size()), kNoneAbove, false, 1, 1, 0};
    std::uint32_t features = 1;
    for (std::size_t i = 0; i < way.size(); ++i) {
      if (way[i].repeated) continue;
      if (way[i].feature == tested.feature) {
        split.above = open[i] + 1;
        split.above_left = way[i].left;
        split.above_taken = way[i].taken;
      } else {
        split.others_taken *= way[i].taken;
        if (lists_others_) others.push_back({way[i].feature, way[i].branch, open[i], !way[i].left});
        ++features;
      }
    }
    split.end_other = static_cast<std::uint32_t>(others.size());
    most_features = std::max(most_features, features);
    most_depth = std::max(most_depth, way.size() + 1);
    open.push_back(static_cast<std::uint32_t>(splits.size()));
    splits.push_back(split);
    const unsigned height = tree.heights[node];
    if (height == 2) add_step(PathMotion::Fork);
    add_step(height == 1 ? PathMotion::Both : PathMotion::Down);
    go(true);
  }

  void leave() {
    back();
    if (tree.heights[splits[open.back()].node] > 1) add_step(PathMotion::Up);
    open.pop_back();
  }

  /// Adds a step at the deepest open split, where the way ends now.
  void add_step(PathMotion motion) {
    const std::uint32_t split = open.back();
    const bool is_right = !way.empty() && !way.back().left;
    steps.push_back({split, splits[split].depth, motion, static_cast<std::uint8_t>(is_right)});
  }

  void go(bool left) {
    const SplitOnWay& split = splits[open.back()];
    const PathNode& tested = tree.nodes[split.node];
    if (split.above != kNoneAbove) way[splits[split.above - 1].depth].repeated = true;
    const double share = left ? tested.number : 1 - tested.number;
    const double taken = split.above_taken * share;
    way.push_back({tested.feature, left, false, static_cast<std::uint32_t>(branches.size()), taken});
    if (lists_others_ && !tree.is_leaf(left ? split.node + 1 : split.right)) branches.push_back(taken);
  }

  void back() {
    way.pop_back();
    const std::uint32_t above = splits[open.back()].above;
    if (above != kNoneAbove) way[splits[above - 1].depth].repeated = false;
  }

  const TreeNodes& tree;
  const bool lists_others_;
  /// Splits that the way has entered and not left. The verifier bounds their number.
  boost::container::static_vector<std::uint32_t, kMaxPathSplits> open;
  boost::container::static_vector<WaySplit, kMaxPathSplits> way;
};

bool is_repeated(const SplitOnWay& split) { return split.above != kNoneAbove; }

/// Appends the constants of a split: see SplitConstants.
void add_constants(const TreeNodes& tree, const SplitOnWay& split, bool four, const Radau& rule,
                   std::vector<double>& to) {
  const double z = tree.nodes[split.node].number, above = split.above_taken;
  const std::size_t left = split.node + 1, right = split.right;
  const bool both = tree.is_leaf(left) && tree.is_leaf(right);
  const double difference = tree.means[left] - tree.means[right];
  const double first = rule.first * split.others_taken * difference;
  const double slope = both ? difference : 1, value = both ? tree.means[right] : 0;
  const double if_left = (1 - z) * slope, if_right = -z * slope;
  const double constants[] = {if_left,          if_right,         0, first * (1 - z), first * -z, 0,
                              tree.means[left], tree.means[right]};
  static_assert(std::size(constants) == SplitConstants::Count);
  const std::size_t begin = to.size(),
                    of_point = four ? SplitConstants::FourConstants : SplitConstants::TwoConstants;
  to.resize(begin + SplitConstants::Count + rule.points.size() * of_point);
  double* at = std::ranges::copy(constants, to.data() + begin).out;
  for (const double t : rule.points) {
    const double chance = above * (1 - t) + t;
    *at++ = value + (above * z * (1 - t) + t) / chance * slope;
    *at++ = value + above * z * (1 - t) / chance * slope;
    if (!four) continue;
    *at++ = value + z * slope;
    *at++ = is_repeated(split) ? above / (chance * chance) : 1;
  }
}

/// Appends the constants of a branch for interactions: h where O = 1, at t = 0 and at the points.
void add_branch(double taken, const Radau& rule, std::vector<double>& to) {
  to.push_back((1 - taken) / taken);
  for (const double t : rule.points) to.push_back((1 - taken) / (taken * (1 - t) + t));
}

/// Two features that interact, the smaller one first.
using Pair = std::pair<std::uint32_t, std::uint32_t>;

Pair pair_of(std::uint32_t a, std::uint32_t b) { return {std::min(a, b), std::max(a, b)}; }

/// Returns the pairs of features of which one is tested below the other, ascending. Sets `least_taken` to the least
/// WaySplit::taken of a branch, if that is smaller.
std::vector<Pair> pairs_of(std::span<const PathNode> nodes, double& least_taken) {
  const TreeNodes tree(nodes);
  const WayThrough way(tree, true);
  for (const double taken : way.branches) least_taken = std::min(least_taken, taken);
  std::vector<Pair> pairs;
  std::size_t other = 0;
  for (const SplitOnWay& split : way.splits)
    for (; other < split.end_other; ++other)
      pairs.push_back(pair_of(nodes[split.node].feature, way.others[other].feature));
  sort_unique(pairs);
  return pairs;
}

std::vector<Pair> all_of(std::span<const std::vector<Pair>> lists) {
  std::vector<Pair> pairs;
  for (const std::vector<Pair>& list : lists)
    for (const Pair& pair : list) pairs.push_back(pair);
  sort_unique(pairs);
  return pairs;
}

/// The terms that have sums and totals. The features that trees test come first, then their interacting pairs.
struct Terms {
  std::vector<std::uint32_t> features;
  std::vector<Pair> pairs;

  std::uint32_t index_of(const Pair& pair) const {
    return static_cast<std::uint32_t>(features.size()) + index_in(pairs, pair);
  }
};

class PathLoader {
 public:
  PathLoader(const Program& program, LoadedPaths& to)
      : program_(program),
        to_(to),
        is_listed_(program.meta().num_features),
        sums_(program.meta().num_features) {}

  void run() {
    const auto base = program_.base();
    std::vector<std::vector<std::span<const PathNode>>> by_output(program_.meta().num_outputs);
    std::vector<double> expected(base.begin(), base.end());
    std::vector<double> means = tree_means(program_, OutputKind::Contributions);
    std::size_t taken = 0;
    for (const ExplainedTree& tree : program_.explained_trees()) {
      by_output[tree.output].push_back(program_.paths().subspan(taken, tree.node_count));
      expected[tree.output] += tree.expected;
      starts_.push_back(taken);
      taken += tree.node_count;
    }
    // XGBoost rounds the mean of the trees to float32, and then adds the base score or the margin.
    for (std::size_t k = 0; program_.meta().score_type == ScalarType::Float32 && k < means.size(); ++k) {
      means[k] = static_cast<double>(static_cast<float>(means[k]));
      expected[k] = base[k] + means[k];
    }
    const std::size_t splits = taken / 2;  // there is a leaf more than splits in each tree
    to_.splits.reserve(splits);
    to_.steps.reserve(2 * splits);
    std::vector<std::vector<std::vector<Pair>>> pairs(by_output.size());
    double least_taken = 1;
    for (std::size_t k = 0; k < by_output.size(); ++k)
      for (const std::span<const PathNode> tree : by_output[k])
        pairs[k].push_back(to_.interactions ? pairs_of(tree, least_taken) : std::vector<Pair>());
    if (least_taken < kMinSingle) to_.wide = true;
    for (std::size_t k = 0; k < by_output.size(); ++k)
      add_output(by_output[k], pairs[k], expected[k], means[k]);
  }

 private:
  using Trees = std::span<const std::span<const PathNode>>;

  /// Returns the features that some trees test, and further features, ascending.
  std::vector<std::uint32_t> features_of(Trees trees, std::span<const std::uint32_t> further) {
    std::vector<std::uint32_t> features;
    const auto add = [&](std::uint32_t feature) {
      if (std::exchange(is_listed_[feature], std::uint8_t{1}) == 0) features.push_back(feature);
    };
    for (const std::span<const PathNode> tree : trees)
      for (const PathNode& node : tree)
        if (node.split != 0) add(node.feature);
    for (const std::uint32_t feature : further) add(feature);
    for (const std::uint32_t feature : features) is_listed_[feature] = 0;
    sort_unique(features);
    return features;
  }

  /// Returns the features in the patterns of the output that is added.
  std::vector<std::uint32_t> features_looked_up() const {
    std::vector<std::uint32_t> features;
    const PatternTest* test = to_.pattern_tests.data();
    for (const PatternLeaf& leaf : to_.pattern_leaves)
      for (const PatternTest* const end = test + leaf.test_count; test != end; ++test)
        if (leaf.output == to_.outputs.size()) features.push_back(test->feature);
    sort_unique(features);
    return features;
  }

  /// Adds the trees of an output. `pairs` has the pairs of features of each tree; `expected` and `mean` go to the
  /// PathOutput.
  void add_output(Trees trees, const std::vector<std::vector<Pair>>& pairs, double expected, double mean) {
    const std::vector<std::uint32_t> looked_up = features_looked_up();
    const Terms terms{features_of(trees, looked_up), all_of(pairs)};
    const auto features = static_cast<std::uint32_t>(terms.features.size());
    const auto pair_count = static_cast<std::uint32_t>(terms.pairs.size());
    PathOutput output{
        to_.batches.size(), 0,   to_.features.size(), to_.total_pairs.size(), features, pair_count,
        expected,           mean};
    for (const std::uint32_t feature : terms.features) to_.features.push_back(feature);
    for (const auto& [a, b] : terms.pairs)
      to_.total_pairs.push_back({index_in(terms.features, a), index_in(terms.features, b)});
    const std::size_t step = to_.wide ? std::max<std::size_t>(trees.size(), 1) : kBatchTrees;
    for (std::size_t begin = 0; begin < trees.size(); begin += step) {
      const std::size_t count = std::min(step, trees.size() - begin);
      const Trees some = trees.subspan(begin, count);
      add_batch(some, {features_of(some, looked_up), all_of(std::span(pairs).subspan(begin, count))}, terms);
    }
    output.end_batch = to_.batches.size();
    to_.most_totals = std::max<std::size_t>(to_.most_totals, std::size_t{features} + pair_count);
    to_.outputs.push_back(output);
  }

  void add_batch(Trees trees, const Terms& sums, const Terms& totals) {
    PathBatch batch{to_.trees.size(), 0, to_.totals.size(), static_cast<std::uint32_t>(sums.features.size()),
                    static_cast<std::uint32_t>(sums.pairs.size())};
    for (std::uint32_t i = 0; i < sums.features.size(); ++i) {
      to_.totals.push_back(index_in(totals.features, sums.features[i]));
      sums_[sums.features[i]] = i;
    }
    for (const Pair& pair : sums.pairs) to_.totals.push_back(totals.index_of(pair));
    for (const std::span<const PathNode> tree : trees) add_tree(tree, sums);
    batch.end_tree = to_.trees.size();
    to_.most_sums = std::max(to_.most_sums, sums.features.size() + sums.pairs.size());
    to_.batches.push_back(batch);
  }

  const Radau& rule_of(std::uint32_t features) {
    Radau& rule = rules_[features / 2];
    if (rule.first == 0) rule = radau(features / 2);
    return rule;
  }

  void add_tree(std::span<const PathNode> nodes, const Terms& sums) {
    const TreeNodes tree(nodes);
    const WayThrough way(tree, to_.interactions);
    if (way.splits.empty()) return;
    const Radau& rule = rule_of(way.most_features);
    const auto points = static_cast<std::uint32_t>(rule.points.size());
    const std::size_t constants = to_.wide ? to_.doubles.size() : to_.singles.size();
    to_.trees.push_back(
        {to_.steps.size(), 0, to_.splits.size(), way.splits.size(), constants, to_.pairs.size(), points,
         index_in(starts_, static_cast<std::size_t>(nodes.data() - program_.paths().data()))});
    constants_ = rule.weights;
    if (to_.interactions) {
      constants_.push_back(-1);
      for (const double t : rule.points) constants_.push_back(-1 / (1 - t));
    }
    bool four = false;
    for (std::size_t i = 0, end = 0; i < way.splits.size(); ++i) {
      if (i == end) {
        const std::uint32_t node = way.splits[i].node;
        end += tree.heights[node] == 2 ? (tree.ends[node] - node) / 2 : 1;
        four = std::ranges::any_of(std::span(way.splits).subspan(i, end - i), is_repeated);
      }
      add_split(tree, way.splits[i], four, rule);
    }
    if (to_.interactions) add_pairs(tree, way, rule, sums);
    if (to_.wide) {
      to_.doubles.insert(to_.doubles.end(), constants_.begin(), constants_.end());
    } else {
      to_.singles.resize(constants + constants_.size());
      std::ranges::transform(constants_, to_.singles.begin() + static_cast<std::ptrdiff_t>(constants),
                             [](double constant) { return static_cast<float>(constant); });
    }
    to_.steps.insert(to_.steps.end(), way.steps.begin(), way.steps.end());
    to_.trees.back().step_count = way.steps.size();
    to_.most_depth = std::max(to_.most_depth, way.most_depth);
    to_.most_splits = std::max(to_.most_splits, way.splits.size());
    to_.most_levels = std::max(to_.most_levels, way.most_depth * points);
    to_.most_points = std::max<std::size_t>(to_.most_points, points);
  }

  void add_pairs(const TreeNodes& tree, const WayThrough& way, const Radau& rule, const Terms& sums) {
    const std::size_t first = constants_.size(), step = rule.points.size() + 1;
    for (const double taken : way.branches) add_branch(taken, rule, constants_);
    std::size_t other = 0;
    for (const SplitOnWay& split : way.splits) {
      for (; other < split.end_other; ++other) {
        const OtherSplit& above = way.others[other];
        const Pair pair = pair_of(tree.nodes[split.node].feature, above.feature);
        to_.pairs.push_back({sums.index_of(pair), static_cast<std::uint32_t>(first + above.branch * step),
                             above.split, above.right});
      }
      to_.pair_ends.push_back(static_cast<std::uint32_t>(other));
    }
  }

  void add_split(const TreeNodes& tree, const SplitOnWay& split, bool four, const Radau& rule) {
    const PathNode& node = tree.nodes[split.node];
    const unsigned flags = (split.above_left ? kAboveLeft : 0u) |
                           (tree.is_leaf(split.node + 1) ? kLeftLeaf : 0u) |
                           (tree.is_leaf(split.right) ? kRightLeaf : 0u) | (four ? kFourConstants : 0u);
    to_.splits.push_back({node.column, sums_[node.feature], static_cast<std::uint32_t>(constants_.size()),
                          split.above, node.code, static_cast<std::uint8_t>(flags)});
    add_constants(tree, split, four, rule, constants_);
  }

  const Program& program_;
  LoadedPaths& to_;
  /// Quadrature rules, indexed by their number of points besides t = 0; empty until they are needed.
  Radau rules_[kMaxPathFeatures / 2 + 1] = {};
  std::vector<double> constants_;    ///< Constants of the tree that is added.
  std::vector<std::size_t> starts_;  ///< For each explained tree, the index of its first node in the section.
  std::vector<std::uint8_t> is_listed_;  ///< For each feature, 1 while features_of has listed it.
  std::vector<std::uint32_t> sums_;  ///< For each feature of the batch that is added, the index of its sum.
};

}  // namespace

LoadedPaths::LoadedPaths(const Program& program)
    : pattern_leaves(program.pattern_leaves()),
      pattern_tests(program.pattern_tests()),
      pattern_numbers(program.pattern_numbers()),
      wide(program.meta().score_type == ScalarType::Float64),
      interactions(program.meta().contributions > 1) {
  if (program.meta().contributions != 0) PathLoader(program, *this).run();
  constexpr std::size_t kReadBehind = SplitConstants::FourConstants - SplitConstants::TwoConstants;
  wide ? doubles.resize(doubles.size() + kReadBehind) : singles.resize(singles.size() + kReadBehind);
}

}  // namespace forestvm
