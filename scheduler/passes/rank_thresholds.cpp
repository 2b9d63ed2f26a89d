// Tests of coded trees -> the encoder's thresholds and sets of categories, for all plans at once. A program
// whose trees all lie in layouts that read the rows themselves has no encoder.
#include <algorithm>

#include <forestvm/core/layouts.hpp>

#include "scheduler/compilation.hpp"
#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {
namespace {

bool coded(const TreeGroup& group) { return takes_codes(group.layout); }

void add_tests(const TiledForest& forest, RankTable& ranks) {
  for (const TreeGroup& group : forest.groups) {
    if (!coded(group)) continue;
    for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
      for (const std::int32_t split : forest.tree(group.tiling, t).nodes)
        ranks.add(test_of(forest.model_tree(t), split));
  }
}

/// Refuses encode(u8) in a plan none of whose trees read codes.
Result<void> check_encode(const Lowering& lowering) {
  const auto& requested = lowering.loops.program.encode;
  const std::vector<TreeGroup>& groups = lowering.forest.groups;
  const bool any = std::any_of(groups.begin(), groups.end(), coded);
  if (requested && requested->value == "u8" && !any && !lowering.model.trees.empty())
    return lowering.refuse(requested->directive, "no tree lies in a layout that reads codes");
  return {};
}

}  // namespace

Result<void> rank_thresholds(Compilation& compilation) {
  for (const Lowering& lowering : compilation.plans) {
    add_tests(lowering.forest, compilation.ranks);
    FVM_TRY(check_encode(lowering));
  }
  for (std::size_t i = 0; i < compilation.explained.nodes.size(); ++i) {
    const PathSource& source = compilation.explained.sources[i];
    if (compilation.explained.nodes[i].split != 0)
      compilation.ranks.add(
          test_of(compilation.model.trees[source.tree], static_cast<std::int32_t>(source.node)));
  }
  for (const PatternStep& step : compilation.explained.steps)
    compilation.ranks.add(
        test_of(compilation.model.trees[step.source.tree], static_cast<std::int32_t>(step.source.node)));
  return compilation.ranks.seal();
}

}  // namespace forestvm::scheduler
