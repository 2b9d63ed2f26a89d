// What a forest is like, in numbers.
#include <forestvm/statistics.hpp>

#include <algorithm>
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
  for (const std::uint32_t count : thresholds_per_feature(model)) {
    result.thresholds += count;
    result.features_used += count != 0;
  }
  return result;
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
