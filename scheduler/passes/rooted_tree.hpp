// A tree of a model in the form from which contributions of features are computed: what the passes that make paths and
// attributions have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::scheduler {

/// The base of classes that go through a model tree by tree.
class RootedTree {
 protected:
  explicit RootedTree(const Model& model);

  /// Makes a tree of the model the current one. A symmetric tree of CatBoost gets its last split as the root, as
  /// CatBoost explains it.
  void take(std::size_t number);

  /// Returns an error whose place is a node of the current tree, as the model numbers trees and nodes.
  Error wrong(std::size_t node, std::string_view what) const;

  /// Returns the feature to which a split's contribution goes. A split of a derived column has one if the column is
  /// computed from a single feature.
  Result<std::uint32_t> feature_of(std::size_t node) const;

  /// Returns output `k` of a leaf, without the tree's weight. Refused if it is not finite.
  Result<double> output_of(std::size_t node, std::uint32_t k) const;

  /// Returns what a leaf adds to output `k`, with the tree's weight and the model's scale. Refused if it is not
  /// finite.
  Result<double> weighted_output_of(std::size_t node, std::uint32_t k) const;

  /// Refuses a split that ends too long a way. `way` has the features of the splits from the root to it.
  Result<void> check_way(std::size_t node, std::span<const std::uint32_t> way) const;

  const Model& model_;
  std::uint32_t number_ = 0;            ///< number of the current tree in the model
  Tree tree_;                           ///< the current tree
  std::vector<std::uint32_t> sources_;  ///< for each node of `tree_`, the node of the model's tree

 private:
  std::vector<std::uint32_t> features_of_columns_;
};

/// Returns a symmetric tree of CatBoost with its last split as the root, and in `sources` the node of the model for
/// each of its nodes. Other trees are returned as they are.
Tree rooted_for_contributions(const Model& model, const Tree& tree, std::vector<std::uint32_t>& sources);

}  // namespace forestvm::scheduler
