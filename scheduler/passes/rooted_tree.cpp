// See rooted_tree.hpp.
#include "scheduler/passes/rooted_tree.hpp"

#include <cmath>
#include <set>

#include <forestvm/core/path_data.hpp>
#include <forestvm/internal/column_features.hpp>
#include <forestvm/internal/formatted.hpp>

namespace forestvm::scheduler {

RootedTree::RootedTree(const Model& model)
    : model_(model), features_of_columns_(features_of_columns(model)) {}

void RootedTree::take(std::size_t number) {
  number_ = static_cast<std::uint32_t>(number);
  tree_ = rooted_for_contributions(model_, model_.trees[number], sources_);
}

Error RootedTree::wrong(std::size_t node, std::string_view what) const {
  return refused(formatted("tree {}, node {}", number_, sources_[node]), what);
}

Result<std::uint32_t> RootedTree::feature_of(std::size_t node) const {
  const std::uint32_t feature = features_of_columns_[tree_.nodes[node].feature];
  if (feature != kSeveralFeatures) return feature;
  return wrong(
      node,
      "tests a column that is computed from several features, to none of which its contribution belongs");
}

Result<double> RootedTree::output_of(std::size_t node, std::uint32_t k) const {
  const Node& leaf = tree_.nodes[node];
  const double value = tree_.leaf_width == 1
                           ? leaf.value
                           : tree_.leaf_vectors[std::size_t{leaf.payload} * tree_.leaf_width + k];
  if (std::isfinite(value)) return value;
  return wrong(node, "the leaf is no finite number, so contributions are not defined");
}

Result<double> RootedTree::weighted_output_of(std::size_t node, std::uint32_t k) const {
  FVM_ASSIGN(const double value, output_of(node, k));
  const double weighted = model_.score_type == ScalarType::Float32
                              ? static_cast<double>(tree_.weight * static_cast<float>(value))
                              : static_cast<double>(tree_.weight) * value;
  return weighted * model_.scale;
}

Result<void> RootedTree::check_way(std::size_t node, std::span<const std::uint32_t> way) const {
  if (way.size() > kMaxPathSplits)
    return wrong(node, formatted("lies below {} splits, the most for which contributions are computed",
                                 kMaxPathSplits));
  if (std::set<std::uint32_t>(way.begin(), way.end()).size() <= kMaxPathFeatures) return {};
  return wrong(
      node,
      formatted("the way to its leaves tests more than {} features, the most for which contributions are "
                "computed",
                kMaxPathFeatures));
}

}  // namespace forestvm::scheduler
