// See statistics.hpp.
#include <forestvm/internal/statistics.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/core/encoder.hpp>

#include "scheduler/tiled_forest.hpp"

namespace forestvm {
namespace {

/// Counts the distinct values of each feature.
template <class Value, class Less>
std::vector<FeatureCount> count_distinct(std::map<std::uint32_t, std::vector<Value>> by_feature,
                                         const Less& less) {
  std::vector<FeatureCount> counts;
  for (auto& [feature, values] : by_feature) {
    std::sort(values.begin(), values.end(), less);
    const auto last = std::unique(values.begin(), values.end(),
                                  [&](const Value& a, const Value& b) { return !less(a, b); });
    counts.push_back({feature, static_cast<std::uint32_t>(last - values.begin())});
  }
  return counts;
}

}  // namespace

ForestShape shape_of(const Model& model) {
  ForestShape result;
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
  return result;
}

ForestStatistics statistics(const Model& model) {
  ForestStatistics result{shape_of(model)};
  std::set<std::uint32_t> used;
  for (const auto& [feature, count] : thresholds_per_feature(model)) {
    result.thresholds += count;
    result.threshold_columns += (count + kColumnThresholds - 1) / kColumnThresholds;
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
  std::map<std::uint32_t, std::vector<const Codes*>> sets;
  for (const Tree& tree : model.trees)
    for (const Node& node : tree.nodes)
      if (node.kind == NodeKind::Category)
        sets[node.feature].push_back(&tree.category_sets[node.payload].codes);
  return count_distinct(std::move(sets), [](const Codes* a, const Codes* b) { return *a < *b; });
}

std::vector<FeatureCount> thresholds_per_feature(const Model& model) {
  std::map<std::uint32_t, std::vector<double>> by_feature;
  for (const Tree& tree : model.trees)
    for (const Node& node : tree.nodes)
      if (node.kind == NodeKind::Less || node.kind == NodeKind::LessEqual)
        by_feature[node.feature].push_back(node.threshold);
  return count_distinct(std::move(by_feature), std::less<>());
}

}  // namespace forestvm
