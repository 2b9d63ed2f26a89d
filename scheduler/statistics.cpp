// What a forest is like, in numbers.
#include <forestvm/statistics.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

#include <forestvm/compile.hpp>

#include "scheduler/tiled_forest.hpp"

namespace forestvm {

ForestStatistics statistics(const Model& model) {
  ForestStatistics result;
  double depth_sum = 0;
  for (const Tree& tree : model.trees) {
    const scheduler::TreeShape shape = scheduler::shape_of(tree);
    result.nodes += shape.nodes;
    result.leaves += shape.leaves;
    result.max_depth = std::max(result.max_depth, shape.depth);
    result.min_depth = &tree == &model.trees.front() ? shape.depth : std::min(result.min_depth, shape.depth);
    depth_sum += shape.depth;
  }
  if (!model.trees.empty()) result.mean_depth = depth_sum / static_cast<double>(model.trees.size());
  for (const Tree& tree : model.trees)
    result.category_splits +=
        static_cast<std::uint64_t>(std::count_if(tree.nodes.begin(), tree.nodes.end(), [](const Node& node) {
          return node.kind == NodeKind::Category;
        }));
  const std::vector<std::uint32_t> thresholds = thresholds_per_feature(model),
                                   sets = category_sets_per_feature(model);
  for (std::uint32_t feature = 0; feature < model.num_features; ++feature) {
    result.thresholds += thresholds[feature];
    result.category_sets += sets[feature];
    result.features_used += thresholds[feature] + sets[feature] != 0;
  }
  return result;
}

std::vector<std::uint32_t> category_sets_per_feature(const Model& model) {
  using Codes = std::vector<std::uint32_t>;
  std::vector<std::pair<std::uint32_t, const Codes*>> sets;
  for (const Tree& tree : model.trees)
    for (const Node& node : tree.nodes)
      if (node.kind == NodeKind::Category)
        sets.emplace_back(node.feature, &tree.category_sets[node.payload].codes);
  std::sort(sets.begin(), sets.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, *a.second) < std::tie(b.first, *b.second);
  });
  std::vector<std::uint32_t> counts(model.num_features);
  for (std::size_t i = 0; i < sets.size(); ++i)
    if (i == 0 || sets[i].first != sets[i - 1].first || *sets[i].second != *sets[i - 1].second)
      ++counts[sets[i].first];
  return counts;
}

std::vector<std::uint32_t> thresholds_per_feature(const Model& model) {
  std::vector<std::pair<std::uint32_t, double>> pairs;
  for (const Tree& tree : model.trees)
    for (const Node& node : tree.nodes)
      if (node.kind == NodeKind::Less || node.kind == NodeKind::LessEqual)
        pairs.emplace_back(node.feature, node.threshold);
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  std::vector<std::uint32_t> counts(model.num_features);
  for (const auto& [feature, threshold] : pairs) ++counts[feature];
  return counts;
}

}  // namespace forestvm
