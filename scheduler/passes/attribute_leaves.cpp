// Trees with covers -> the attributions of each leaf: approximate contributions of features, as Saabas defined them.
// The mean of a split is the mean of its children, weighted by their covers. On the way to a leaf, each split
// attributes the change of the mean to its feature.
//
//   f3 < 2 [cover 10]: 0.5 [cover 4], 1.5 [cover 6]     ->     mean 1.1; first leaf: f3 -0.6; second leaf: f3 0.4
//
// Numbers are rounded as XGBoost rounds them: means, changes and sums of a tree's changes at one feature have the type
// of scores, and are multiplied by the tree's weight last. This pass comes before leaves are numbered, while they are
// still values.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <forestvm/internal/formatted.hpp>

#include "scheduler/compilation.hpp"
#include "scheduler/passes/rooted_tree.hpp"

namespace forestvm::scheduler {
namespace {

template <class Score>
class LeafAttributor : RootedTree {
 public:
  LeafAttributor(const Model& model, AttributedForest& to)
      : RootedTree(model), to_(to), means_(model.num_outputs) {}

  Result<void> run() {
    to_.leaves = {0};
    for (std::size_t t = 0; t < model_.trees.size(); ++t) FVM_TRY(add(t));
    for (std::size_t k = 0; k < means_.size(); ++k)
      to_.base.push_back(static_cast<double>(scaled(means_[k]) + static_cast<Score>(model_.base[k])));
    if (model_.takes_margins)
      for (const Score mean : means_) to_.base.push_back(static_cast<double>(scaled(mean)));
    return {};
  }

 private:
  /// The way to a node: the features of its splits, each once, with the sum of the changes at them.
  struct Way {
    struct Part {
      std::uint32_t feature;
      Score value;
    };
    std::vector<Part> parts;
  };

  Score scaled(Score number) const {
    return model_.scale == 1 ? number : number * static_cast<Score>(model_.scale);
  }

  Result<void> add(std::size_t number) {
    take(number);
    FVM_TRY(expect_covers());
    of_leaf_.assign(tree_.nodes.size(), {});
    for (std::uint32_t k = 0; k < tree_.leaf_width; ++k) {
      FVM_TRY(find_means(k));
      const std::uint32_t output = tree_.leaf_width == 1 ? tree_.output : k;
      means_[output] += static_cast<Score>(tree_.weight) * means_of_nodes_[0];
      FVM_TRY(attribute(output));
    }
    return emit();
  }

  /// Refuses trees without covers at the root, before the splits below it are found to lack them.
  Result<void> expect_covers() const {
    const Node& root = tree_.nodes[0];
    if (root.kind == NodeKind::Leaf || tree_.nodes[static_cast<std::size_t>(root.left)].cover != 0 ||
        tree_.nodes[static_cast<std::size_t>(root.right)].cover != 0)
      return {};
    return wrong(
        0,
        "the model does not say how many training rows went each way, from which contributions are computed");
  }

  /// Computes the mean of each node for an output, children before parents.
  Result<void> find_means(std::uint32_t k) {
    means_of_nodes_.assign(tree_.nodes.size(), 0);
    std::vector<std::size_t> order{0};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Node& node = tree_.nodes[order[i]];
      if (node.kind == NodeKind::Leaf) continue;
      order.push_back(static_cast<std::size_t>(node.left));
      order.push_back(static_cast<std::size_t>(node.right));
    }
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::size_t n = order[i];
      FVM_ASSIGN(means_of_nodes_[n], tree_.nodes[n].kind == NodeKind::Leaf ? value_of(n, k) : mean_of(n));
    }
    return {};
  }

  Result<Score> value_of(std::size_t n, std::uint32_t k) const {
    FVM_ASSIGN(const double value, output_of(n, k));
    return static_cast<Score>(value);
  }

  Result<Score> mean_of(std::size_t n) const {
    const Node& split = tree_.nodes[n];
    const auto left = static_cast<std::size_t>(split.left), right = static_cast<std::size_t>(split.right);
    const auto own = static_cast<Score>(split.cover), to_left = static_cast<Score>(tree_.nodes[left].cover),
               to_right = static_cast<Score>(tree_.nodes[right].cover);
    if (own < 0 || to_left < 0 || to_right < 0)
      return wrong(n, "a cover is negative, so contributions are not defined");
    if (own == 0 && model_.trainer == "xgboost")
      return wrong(n, "no training rows came to it, so its mean score is not defined in XGBoost");
    if (own == 0) return (means_of_nodes_[left] + means_of_nodes_[right]) / 2;
    Score mean = means_of_nodes_[left] * to_left;
    mean += means_of_nodes_[right] * to_right;
    mean /= own;
    if (!std::isfinite(mean)) return wrong(n, "its mean score is not finite");
    return mean;
  }

  /// Finds the attributions of each leaf for an output.
  Result<void> attribute(std::uint32_t output) {
    struct Visit {
      std::size_t node;
      Way way;
    };
    std::vector<Visit> open{{0, {}}};
    while (!open.empty()) {
      Visit visit = std::move(open.back());
      open.pop_back();
      const Node& node = tree_.nodes[visit.node];
      if (node.kind == NodeKind::Leaf) {
        for (const auto& part : visit.way.parts)
          of_leaf_[visit.node].push_back(
              {static_cast<double>(scaled(part.value * static_cast<Score>(tree_.weight))),
               output * (model_.num_features + 1) + part.feature, 0});
        continue;
      }
      FVM_ASSIGN(const std::uint32_t feature, feature_of(visit.node));
      for (const std::int32_t child : {node.right, node.left}) {
        const auto to = static_cast<std::size_t>(child);
        Way way = child == node.left ? std::move(visit.way) : visit.way;
        const Score change = means_of_nodes_[to] - means_of_nodes_[visit.node];
        const auto found = std::find_if(way.parts.begin(), way.parts.end(),
                                        [&](const auto& part) { return part.feature == feature; });
        if (found == way.parts.end())
          way.parts.push_back({feature, change});
        else
          found->value += change;
        open.push_back({to, std::move(way)});
      }
    }
    return {};
  }

  /// Appends the attributions of the tree's leaves, by their numbers.
  Result<void> emit() {
    std::vector<const std::vector<Attribution>*> by_number;
    for (std::size_t n = 0; n < tree_.nodes.size(); ++n) {
      if (tree_.nodes[n].kind != NodeKind::Leaf) continue;
      const auto leaf = static_cast<std::size_t>(leaf_number(model_.trees[number_], sources_[n]));
      if (leaf >= by_number.size()) by_number.resize(leaf + 1);
      by_number[leaf] = &of_leaf_[n];
    }
    to_.trees.push_back(
        {static_cast<std::uint32_t>(to_.leaves.size() - 1), static_cast<std::uint32_t>(by_number.size())});
    for (const auto* const attributions : by_number) {
      if (attributions != nullptr)
        to_.attributions.insert(to_.attributions.end(), attributions->begin(), attributions->end());
      to_.leaves.push_back(static_cast<std::uint32_t>(to_.attributions.size()));
    }
    if (to_.attributions.size() <= UINT32_MAX) return {};
    return refused("model", "its leaves have more than 4,294,967,295 approximate contributions");
  }

  AttributedForest& to_;
  std::vector<Score> means_;  ///< sums of the trees' means, for each output
  std::vector<Score> means_of_nodes_;
  std::vector<std::vector<Attribution>> of_leaf_;  ///< attributions of each leaf, by its node
};

}  // namespace

Result<void> attribute_leaves(Compilation& compilation) {
  if (!compilation.options.approx_contributions) return {};
  const Model& model = compilation.model;
  FVM_TRY(check_contributions(model));
  if (model.score_type == ScalarType::Float32)
    return LeafAttributor<float>(model, compilation.attributed).run();
  return LeafAttributor<double>(model, compilation.attributed).run();
}

}  // namespace forestvm::scheduler
