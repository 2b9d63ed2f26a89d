// See statistics.hpp.
#include <forestvm/statistics.hpp>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <forestvm/compile.hpp>

#include "scheduler/tiled_forest.hpp"

namespace forestvm {
namespace {

/// Counts the pairs of each feature. The pairs are sorted by feature.
template <class Pair>
std::vector<FeatureCount> count_by_feature(const std::vector<Pair>& pairs) {
  std::vector<FeatureCount> counts;
  for (const Pair& pair : pairs) {
    if (counts.empty() || counts.back().feature != pair.first) counts.push_back({pair.first, 0});
    ++counts.back().count;
  }
  return counts;
}

}  // namespace

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
  std::set<std::uint32_t> used;
  for (const auto& [feature, count] : thresholds_per_feature(model)) {
    result.thresholds += count;
    used.insert(feature);
  }
  for (const auto& [feature, count] : category_sets_per_feature(model)) {
    result.category_sets += count;
    used.insert(feature);
  }
  result.features_used = static_cast<std::uint32_t>(used.size());
  return result;
}

std::vector<FeatureCount> category_sets_per_feature(const Model& model) {
  using Codes = std::vector<std::uint32_t>;
  std::vector<std::pair<std::uint32_t, const Codes*>> sets;
  for (const Tree& tree : model.trees)
    for (const Node& node : tree.nodes)
      if (node.kind == NodeKind::Category)
        sets.emplace_back(node.feature, &tree.category_sets[node.payload].codes);
  std::sort(sets.begin(), sets.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, *a.second) < std::tie(b.first, *b.second);
  });
  sets.erase(
      std::unique(sets.begin(), sets.end(),
                  [](const auto& a, const auto& b) { return a.first == b.first && *a.second == *b.second; }),
      sets.end());
  return count_by_feature(sets);
}

std::vector<FeatureCount> thresholds_per_feature(const Model& model) {
  std::vector<std::pair<std::uint32_t, double>> pairs;
  for (const Tree& tree : model.trees)
    for (const Node& node : tree.nodes)
      if (node.kind == NodeKind::Less || node.kind == NodeKind::LessEqual)
        pairs.emplace_back(node.feature, node.threshold);
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return count_by_feature(pairs);
}

}  // namespace forestvm
