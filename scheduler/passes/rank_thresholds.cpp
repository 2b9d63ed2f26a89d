// Tests of coded trees -> the encoder's thresholds and sets of categories. A program whose trees all lie in
// layouts that read the rows themselves has no encoder.
#include <algorithm>

#include <forestvm/core/layouts.hpp>

#include "scheduler/layouts/builder.hpp"
#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

bool coded(const TreeGroup& group) { return takes_codes(group.layout); }

}  // namespace

/// Trees that are a leaf test nothing: where all are, there is nothing to encode by.
bool Lowering::encodes() const {
  return std::any_of(forest.groups.begin(), forest.groups.end(), [this](const TreeGroup& group) {
    bool tests = false;
    for (std::uint32_t t = group.tree_begin; coded(group) && t < group.tree_end; ++t)
      tests = tests || forest.tree(group.tiling, t).depth != 0;
    return tests;
  });
}

Result<void> rank_thresholds(Lowering& lowering) {
  const TiledForest& forest = lowering.forest;
  for (const TreeGroup& group : forest.groups) {
    if (!coded(group)) continue;
    for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
      for (const std::int32_t split : forest.tree(group.tiling, t).nodes)
        forest.ranks.add(test_of(forest.model_tree(t), split));
  }
  const auto& asked = lowering.loops.program.encode;
  const bool any = std::any_of(forest.groups.begin(), forest.groups.end(), coded);
  if (asked && asked->value == "u8" && !any && !lowering.model.trees.empty())
    return lowering.refuse(asked->directive, "no tree lies in a layout that reads codes");
  return {};
}

}  // namespace forestvm::scheduler
