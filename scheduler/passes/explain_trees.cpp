// Trees with covers -> paths: each tree in preorder, with the share of the training rows that went left at each split.
//
//   f3 < 2 [cover 10]: 0.5 [cover 4], 1.5 [cover 6]     ->     split f3, share 0.4; leaf 0.5; leaf 1.5
//
// Where the covers of two children do not add up to their parent's, a split of the same column comes first, which sends
// all rows left. Its share is the sum of both children's shares of the parent's cover, and its right child is a leaf of
// the value 0.
//
//   f3 < 2 [cover 10]: 0.5 [cover 4], 1.5 [cover 4]     ->     split f3 of code 255, share 0.8; split f3, share 0.5;
//                                                              leaf 0.5; leaf 1.5; leaf 0
//
// A tree whose leaves are vectors becomes a tree for each output. This pass comes before leaves are numbered, while
// they are still values.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <forestvm/internal/formatted.hpp>

#include "scheduler/compilation.hpp"
#include "scheduler/passes/rooted_tree.hpp"

namespace forestvm::scheduler {
namespace {

/// The part of a node's cover by which the sum of its children's covers may differ from it: the rounding of float32
/// numbers. Shares are then parts of the sum.
constexpr double kCoverTolerance = 0x1p-20;

/// The least share of a branch in models of XGBoost; in models of other trainers it is kMinShare.
constexpr double kXgboostMinShare = 1e-12;

class TreeExplainer : RootedTree {
 public:
  TreeExplainer(const Model& model, ExplainedForest& to) : RootedTree(model), to_(to) {}

  Result<void> add(std::size_t number) {
    take(number);
    FVM_TRY(measure());
    for (std::uint32_t k = 0; k < tree_.leaf_width; ++k) FVM_TRY(add_output(k));
    return {};
  }

 private:
  struct Shares {
    double left = 0;  ///< cover(left) / (cover(left) + cover(right)).
    double both = 1;  ///< (cover(left) + cover(right)) / cover(split).
  };

  /// The origin of a node of the paths: a leaf or a split of the tree, the split that is added before it and has the
  /// share of both children, or the leaf that is added to that split and that no row reaches.
  enum class Part : std::uint8_t { Leaf, Split, Both, Empty };
  struct PartOfNode {
    std::size_t node;
    Part part;
  };

  const Node& node(std::int32_t index) const { return tree_.nodes[static_cast<std::size_t>(index)]; }

  static bool is_leaf(const Node& node) { return node.kind == NodeKind::Leaf; }

  /// Finds the feature and the shares of each split, in preorder. Returns an error if the tree cannot be explained.
  Result<void> measure() {
    preorder_.clear();
    shares_.assign(tree_.nodes.size(), {});
    features_.assign(tree_.nodes.size(), 0);
    struct Visit {
      std::int32_t node;
      std::size_t depth;
      bool empty;  ///< True for the leaf to which no row goes.
    };
    std::vector<Visit> open{{0, 0, false}};
    std::vector<std::uint32_t> way;  // features of the splits above
    while (!open.empty()) {
      const Visit visit = open.back();
      open.pop_back();
      const auto n = static_cast<std::size_t>(visit.node);
      if (visit.empty || is_leaf(tree_.nodes[n])) {
        preorder_.push_back({n, visit.empty ? Part::Empty : Part::Leaf});
        continue;
      }
      way.resize(visit.depth);
      FVM_ASSIGN(features_[n], feature_of(n));
      FVM_ASSIGN(shares_[n], shares_of(n));
      if (shares_[n].both != 1) {
        preorder_.push_back({n, Part::Both});
        open.push_back({visit.node, visit.depth, true});
        way.push_back(features_[n]);
      }
      preorder_.push_back({n, Part::Split});
      way.push_back(features_[n]);
      FVM_TRY(check_way(n, way));
      open.push_back({tree_.nodes[n].right, way.size(), false});
      open.push_back({tree_.nodes[n].left, way.size(), false});
    }
    return {};
  }

  Result<Shares> shares_of(std::size_t n) const {
    const Node& split = tree_.nodes[n];
    const auto left = static_cast<double>(node(split.left).cover),
               right = static_cast<double>(node(split.right).cover), own = static_cast<double>(split.cover);
    const auto text = [](double cover) {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.9g", cover);
      return std::string(digits);
    };
    if (n == 0 && left + right == 0)
      return wrong(
          n,
          "the model does not say how many training rows went each way, from which contributions are computed");
    if (left < 0 || right < 0)
      return wrong(n, "the cover of a child is negative, so contributions are not defined");
    const double least = model_.trainer == "xgboost" ? kXgboostMinShare : kMinShare;
    if (own == 0) return Shares{0.5, 1};
    if (std::abs(left + right - own) <= kCoverTolerance * std::max(own, left + right))
      return Shares{std::clamp(left / (left + right), least, 1 - least), 1};
    if (std::max(left, right) > own)
      return wrong(
          n, formatted("the cover of a child, {}, is above its own, {}, so contributions are not defined",
                       text(std::max(left, right)), text(own)));
    const double to_left = std::max(left / own, least), to_right = std::max(right / own, least);
    const double both = to_left + to_right;
    return Shares{std::clamp(to_left / both, kMinShare, 1 - kMinShare), both};
  }

  /// Returns what a leaf adds to an output. CatBoost leaves out what lies behind branches without training rows.
  Result<double> value_of(std::size_t n, std::uint32_t k) const {
    const Node& leaf = tree_.nodes[n];
    if (model_.trainer == "catboost" && leaf.cover == 0 && n != 0) return 0.0;
    return weighted_output_of(n, k);
  }

  Result<void> add_output(std::uint32_t k) {
    const std::size_t first = to_.nodes.size();
    for (const auto& [n, part] : preorder_) {
      PathNode path{};
      if (part == Part::Leaf) {
        FVM_ASSIGN(path.number, value_of(n, k));
      } else if (part != Part::Empty) {
        path.number = part == Part::Both ? shares_[n].both : shares_[n].left;
        path.feature = features_[n];
        path.split = 1;
      }
      to_.nodes.push_back(path);
      to_.sources.push_back({number_, sources_[n], part == Part::Both});
    }
    ExplainedTree explained{};
    explained.node_count = static_cast<std::uint32_t>(preorder_.size());
    explained.output = tree_.leaf_width == 1 ? tree_.output : k;
    if (model_.trainer == "lightgbm") {
      FVM_ASSIGN(explained.expected, mean_of_leaves());
    } else if (model_.trainer == "xgboost") {
      FVM_ASSIGN(explained.expected, tree_.leaf_width == 1 ? mean_of_nodes() : mean_of_vectors(k));
      explained.expected *= static_cast<double>(tree_.weight);
    } else {
      explained.expected = mean_of_paths(first);
    }
    to_.trees.push_back(explained);
    return {};
  }

  /// Returns the mean of a tree's leaves as LightGBM computes it: leaf after leaf.
  Result<double> mean_of_leaves() const {
    if (preorder_.size() == 1) return value_of(0, 0);
    double mean = 0;
    for (std::size_t n = 0; n < tree_.nodes.size(); ++n) {
      if (!is_leaf(tree_.nodes[n])) continue;
      FVM_ASSIGN(const double value, value_of(n, 0));
      mean += static_cast<double>(tree_.nodes[n].cover) / static_cast<double>(tree_.nodes[0].cover) * value;
    }
    return mean;
  }

  double cover_of(std::int32_t index) const { return static_cast<double>(node(index).cover); }

  /// Returns the mean of a tree's leaves without its weight, as XGBoost computes it from release 3.3 on: from the
  /// leaves up.
  Result<double> mean_of_nodes() const {
    std::vector<std::size_t> order{0};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Node& split = tree_.nodes[order[i]];
      if (is_leaf(split)) continue;
      order.push_back(static_cast<std::size_t>(split.left));
      order.push_back(static_cast<std::size_t>(split.right));
    }
    std::vector<double> means(tree_.nodes.size());
    for (std::size_t i = order.size(); i-- > 0;) {
      const Node& split = tree_.nodes[order[i]];
      if (is_leaf(split)) {
        FVM_ASSIGN(means[order[i]], output_of(order[i], 0));
        continue;
      }
      const double left = means[static_cast<std::size_t>(split.left)],
                   right = means[static_cast<std::size_t>(split.right)];
      means[order[i]] = split.cover == 0 ? 0.5 * (left + right)
                                         : (left * cover_of(split.left) + right * cover_of(split.right)) /
                                               static_cast<double>(split.cover);
    }
    return means[0];
  }

  /// Returns the mean of output `k` of a tree whose leaves are vectors, leaf after leaf as mean_of_leaves does.
  Result<double> mean_of_vectors(std::uint32_t k) const {
    struct Visit {
      std::int32_t node;
      double share;  ///< share of the training rows that come to it
    };
    std::vector<Visit> open{{0, 1}};
    double mean = 0;
    while (!open.empty()) {
      const Visit visit = open.back();
      open.pop_back();
      const Node& split = node(visit.node);
      if (is_leaf(split)) {
        FVM_ASSIGN(const double value, output_of(static_cast<std::size_t>(visit.node), k));
        mean += visit.share * value;
        continue;
      }
      const auto share = [&](std::int32_t child) {
        return split.cover == 0 ? visit.share * 0.5
                                : visit.share * cover_of(child) / static_cast<double>(split.cover);
      };
      open.push_back({split.right, share(split.right)});
      open.push_back({split.left, share(split.left)});
    }
    return mean;
  }

  /// Returns the mean of a tree's leaves, from its leaves up.
  double mean_of_paths(std::size_t first) const {
    std::vector<double> means;
    for (std::size_t i = to_.nodes.size(); i-- > first;) {
      const PathNode& path = to_.nodes[i];
      if (path.split == 0) {
        means.push_back(path.number);
        continue;
      }
      const double left = means.back();
      means.pop_back();
      means.back() = path.number * left + (1 - path.number) * means.back();
    }
    return means.back();
  }

  ExplainedForest& to_;
  std::vector<PartOfNode> preorder_;     ///< nodes of the paths, a split before its left subtree
  std::vector<Shares> shares_;           ///< shares of the training rows, for each split
  std::vector<std::uint32_t> features_;  ///< feature to which the contribution goes, for each split
};

}  // namespace

Result<void> explain_trees(Compilation& compilation) {
  if (explained_outputs(compilation.options).empty() || compilation.options.background) return {};
  const Model& model = compilation.model;
  FVM_TRY(check_contributions(model));
  const std::uint64_t terms = std::uint64_t{model.num_features} + 1;
  const std::uint64_t pairs = model.num_outputs * terms * terms;
  if (compilation.options.interactions && pairs > kMaxInteractions)
    return refused("model", "a row would have {} interactions, at most {}", pairs, kMaxInteractions);
  TreeExplainer explainer(model, compilation.explained);
  for (std::size_t t = 0; t < model.trees.size(); ++t) FVM_TRY(explainer.add(t));
  return {};
}

}  // namespace forestvm::scheduler
