// See loaded_paths.hpp.
#include "vm/host/paths/loaded_paths.hpp"

#include <algorithm>
#include <map>
#include <span>

#include "vm/host/paths/radau.hpp"

namespace forestvm::host {
namespace {

/// The trees of a batch of float32 scores. Few additions in float32 keep the errors of long sums away.
constexpr std::size_t kBatchTrees = 16;

/// A split on the way from the root to the one that is visited.
struct WaySplit {
  std::uint32_t feature;
  bool left;      ///< True if the way goes to its left child.
  bool repeated;  ///< True if a split below it on the way tests its feature.
  double
      taken;  ///< Product of the shares that the way takes, over this split and those of its feature above it.
};

/// A split that is visited.
struct Visit {
  std::uint32_t node;
  std::uint32_t right;  ///< Node of the right child; the left one follows the split.
  std::uint32_t index;  ///< Number of the split among those of the tree.
  std::uint16_t depth;
  std::uint16_t above;     ///< See PathSplit.
  double above_taken;      ///< Z: WaySplit::taken of the split `above`, 1 without one.
  double others_taken;     ///< The product of the shares that the way takes at splits of other features.
  std::uint32_t features;  ///< Different features on the way, its own included.
};

/// The nodes of a tree, and what follows from them without the ways.
struct TreeNodes {
  explicit TreeNodes(std::span<const PathNode> of) : nodes(of), ends(of.size()), means(of.size()) {
    for (std::size_t n = nodes.size(); n-- > 0;) {
      ends[n] = static_cast<std::uint32_t>(n + 1);
      means[n] = nodes[n].number;
      if (nodes[n].split == 0) continue;
      const std::size_t left = n + 1, right = ends[left];
      ends[n] = ends[right];
      means[n] = nodes[n].number * means[left] + (1 - nodes[n].number) * means[right];
    }
  }

  bool is_leaf(std::size_t node) const { return nodes[node].split == 0; }

  std::span<const PathNode> nodes;
  std::vector<std::uint32_t> ends;  ///< For each node the one after its subtree.
  std::vector<double> means;        ///< For each node the mean of its leaves over the training rows.
};

/// Goes through a tree in the order of the steps: calls enter(visit) at each split, turn(visit) between its children
/// and leave(visit) behind them.
class TreeVisitor {
 public:
  explicit TreeVisitor(const TreeNodes& tree) : tree_(tree) {}

  template <class Enter, class Turn, class Leave>
  void run(const Enter& enter, const Turn& turn, const Leave& leave) {
    if (tree_.is_leaf(0)) return;
    visits_.push_back(visit_of(0));
    enter(visits_.back());
    go(visits_.back(), true);
    for (;;) {
      // The way leads to the child at which the deepest split's direction points.
      const Visit here = visits_.back();
      const std::size_t child = way_.back().left ? here.node + 1 : here.right;
      if (!tree_.is_leaf(child)) {
        visits_.push_back(visit_of(static_cast<std::uint32_t>(child)));
        enter(visits_.back());
        go(visits_.back(), true);
        continue;
      }
      while (!way_.back().left) {
        back();
        leave(visits_.back());
        visits_.pop_back();
        if (visits_.empty()) return;
      }
      back();
      turn(visits_.back());
      go(visits_.back(), false);
    }
  }

 private:
  Visit visit_of(std::uint32_t node) {
    const PathNode& split = tree_.nodes[node];
    Visit visit{
        node, tree_.ends[node + 1], count_++, static_cast<std::uint16_t>(way_.size()), kNoneAbove, 1, 1, 1};
    for (std::size_t i = 0; i < way_.size(); ++i) {
      if (way_[i].repeated) continue;
      if (way_[i].feature == split.feature) {
        visit.above = static_cast<std::uint16_t>(i);
        visit.above_taken = way_[i].taken;
      } else {
        visit.others_taken *= way_[i].taken;
        ++visit.features;
      }
    }
    return visit;
  }

  void go(const Visit& visit, bool left) {
    const PathNode& split = tree_.nodes[visit.node];
    if (visit.above != kNoneAbove) way_[visit.above].repeated = true;
    const double share = left ? split.number : 1 - split.number;
    way_.push_back({split.feature, left, false, visit.above_taken * share});
  }

  void back() {
    way_.pop_back();
    const std::uint16_t above = visits_.back().above;
    if (above != kNoneAbove) way_[above].repeated = false;
  }

  const TreeNodes& tree_;
  std::vector<Visit> visits_;
  std::vector<WaySplit> way_;
  std::uint32_t count_ = 0;
};

/// Appends the constants of splits, as numbers of the type of the scores.
template <class Number>
class ConstantWriter {
 public:
  ConstantWriter(const TreeNodes& tree, const Radau& rule, std::vector<Number>& to)
      : tree_(tree), rule_(rule), to_(to) {}

  void add_weights() {
    for (const double weight : rule_.weights) put(weight);
  }

  void add(const Visit& visit) {
    const double z = tree_.nodes[visit.node].number, above = visit.above_taken;
    const std::size_t left = visit.node + 1, right = visit.right;
    const bool both = tree_.is_leaf(left) && tree_.is_leaf(right);
    const double difference = tree_.means[left] - tree_.means[right];
    const double first = rule_.first * visit.others_taken * difference;
    const double slope = both ? difference : 1, value = both ? tree_.means[right] : 0;
    put((1 - z) * slope);
    put(-z * slope);
    put(first * (1 - z));
    put(first * -z);
    put(value + z * slope);
    put(tree_.means[left]);
    put(tree_.means[right]);
    for (const double t : rule_.points) {
      const double chance = above * (1 - t) + t;
      put(value + (above * z * (1 - t) + t) / chance * slope);
      put(value + above * z * (1 - t) / chance * slope);
      if (visit.above != kNoneAbove) put(above / (chance * chance));
    }
  }

 private:
  void put(double number) { to_.push_back(static_cast<Number>(number)); }

  const TreeNodes& tree_;
  const Radau& rule_;
  std::vector<Number>& to_;
};

/// Returns the features that some trees test, ascending.
template <class Trees>
std::vector<std::uint32_t> features_of(const Trees& trees) {
  std::vector<std::uint32_t> features;
  for (const std::span<const PathNode> tree : trees)
    for (const PathNode& node : tree)
      if (node.split != 0) features.push_back(node.feature);
  std::sort(features.begin(), features.end());
  features.erase(std::unique(features.begin(), features.end()), features.end());
  return features;
}

std::uint32_t index_in(std::span<const std::uint32_t> sorted, std::uint32_t number) {
  return static_cast<std::uint32_t>(std::lower_bound(sorted.begin(), sorted.end(), number) - sorted.begin());
}

class PathLoader {
 public:
  PathLoader(const Program& program, LoadedPaths& to) : program_(program), to_(to) {}

  void run() {
    const auto base = program_.section_Base();
    std::vector<std::vector<std::span<const PathNode>>> by_output(program_.meta().num_outputs);
    std::vector<double> expected(base.begin(), base.end());
    std::size_t taken = 0;
    for (const ExplainedTree& tree : program_.section_ExplainedTrees()) {
      by_output[tree.output].push_back(program_.section_Paths().subspan(taken, tree.node_count));
      expected[tree.output] += tree.expected;
      taken += tree.node_count;
    }
    for (std::size_t k = 0; k < by_output.size(); ++k) add_output(by_output[k], expected[k]);
  }

 private:
  using Trees = std::span<const std::span<const PathNode>>;

  void add_output(Trees trees, double expected) {
    const std::vector<std::uint32_t> features = features_of(trees);
    const auto count = static_cast<std::uint32_t>(features.size());
    PathOutput output{to_.batches.size(), 0, to_.features.size(), count, expected};
    to_.features.insert(to_.features.end(), features.begin(), features.end());
    const std::size_t step = to_.wide ? std::max<std::size_t>(trees.size(), 1) : kBatchTrees;
    for (std::size_t begin = 0; begin < trees.size(); begin += step)
      add_batch(trees.subspan(begin, std::min(step, trees.size() - begin)), features);
    output.end_batch = to_.batches.size();
    to_.most_totals = std::max<std::size_t>(to_.most_totals, count);
    to_.outputs.push_back(output);
  }

  void add_batch(Trees trees, std::span<const std::uint32_t> totals) {
    const std::vector<std::uint32_t> features = features_of(trees);
    PathBatch batch{to_.trees.size(), 0, to_.totals.size(), static_cast<std::uint32_t>(features.size())};
    for (const std::uint32_t feature : features) to_.totals.push_back(index_in(totals, feature));
    for (const std::span<const PathNode> tree : trees) {
      if (to_.wide)
        add_tree(tree, features, to_.doubles);
      else
        add_tree(tree, features, to_.singles);
    }
    batch.end_tree = to_.trees.size();
    to_.most_sums = std::max(to_.most_sums, features.size());
    to_.batches.push_back(batch);
  }

  const Radau& rule_of(std::uint32_t features) {
    const auto [at, is_new] = rules_.try_emplace(features / 2);
    if (is_new) at->second = radau(features / 2);
    return at->second;
  }

  template <class Number>
  void add_tree(std::span<const PathNode> nodes, std::span<const std::uint32_t> features,
                std::vector<Number>& constants) {
    const TreeNodes tree(nodes);
    std::uint32_t most_features = 0;
    std::size_t most_depth = 0;
    const auto measure = [&](const Visit& visit) {
      most_features = std::max(most_features, visit.features);
      most_depth = std::max<std::size_t>(most_depth, visit.depth + 1u);
    };
    TreeVisitor(tree).run(
        measure, [](const Visit&) {}, [](const Visit&) {});
    if (most_depth == 0) return;
    const Radau& rule = rule_of(most_features);
    const auto points = static_cast<std::uint32_t>(rule.points.size());
    PathTree loaded{to_.steps.size(), 0, to_.splits.size(), constants.size(), points};
    ConstantWriter<Number> writer(tree, rule, constants);
    writer.add_weights();
    directions_.assign(most_depth, 0);
    const auto step = [&](const Visit& visit, PathMotion motion) {
      const std::uint8_t is_right = visit.depth == 0 ? 0 : directions_[visit.depth - 1u];
      to_.steps.push_back({visit.index, visit.depth, motion, is_right});
    };
    const auto leaf = [&](std::size_t child) { return tree.is_leaf(child); };
    const auto enter = [&](const Visit& visit) {
      const PathNode& node = nodes[visit.node];
      const bool left = leaf(visit.node + 1), right = leaf(visit.right);
      directions_[visit.depth] = 0;
      const bool above_left = visit.above != kNoneAbove && directions_[visit.above] == 0;
      const unsigned flags =
          (above_left ? kAboveLeft : 0u) | (left ? kLeftLeaf : 0u) | (right ? kRightLeaf : 0u);
      to_.splits.push_back({node.column, index_in(features, node.feature),
                            static_cast<std::uint32_t>(constants.size() - loaded.first_constant), visit.above,
                            node.code, static_cast<std::uint8_t>(flags)});
      writer.add(visit);
      step(visit, left && right ? PathMotion::Both : left ? PathMotion::Right : PathMotion::Left);
    };
    const auto turn = [&](const Visit& visit) {
      directions_[visit.depth] = 1;
      if (!leaf(visit.node + 1) && !leaf(visit.right)) step(visit, PathMotion::Turn);
    };
    const auto leave = [&](const Visit& visit) {
      if (!leaf(visit.node + 1) || !leaf(visit.right)) step(visit, PathMotion::Up);
    };
    TreeVisitor(tree).run(enter, turn, leave);
    loaded.step_count = to_.steps.size() - loaded.first_step;
    to_.most_depth = std::max(to_.most_depth, most_depth);
    to_.most_levels = std::max(to_.most_levels, most_depth * points);
    to_.trees.push_back(loaded);
  }

  const Program& program_;
  LoadedPaths& to_;
  std::map<std::uint32_t, Radau> rules_;
  std::vector<std::uint8_t> directions_;  ///< For each depth, 1 if the way goes right there.
};

}  // namespace

LoadedPaths::LoadedPaths(const Program& program) : wide(program.meta().score_type == ScalarType::Float64) {
  if (program.meta().contributions != 0) PathLoader(program, *this).run();
}

}  // namespace forestvm::host
