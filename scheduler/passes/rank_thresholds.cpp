// Tests of coded trees -> the encoder's columns. A program whose trees all lie in layouts that read the rows
// themselves has no encoder.
#include <forestvm/core/layouts.hpp>

#include "scheduler/layouts/builder.hpp"
#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {

Result<void> rank_thresholds(Lowering& lowering) {
  TiledForest& forest = lowering.forest;
  for (const TreeGroup& group : forest.groups) {
    if (!takes_codes(group.layout)) continue;
    for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
      for (const std::int32_t split : forest.tree(group.tiling, t).nodes)
        forest.ranks.add(test_of(forest.model_tree(t), split));
  }
  forest.ranks.seal();
  const auto& asked = lowering.loops.program.encode;
  if (asked && asked->value == "u8" && forest.ranks.columns().empty() && !lowering.model.trees.empty())
    return lowering.refuse(asked->directive, "no tree lies in a layout that reads codes");
  if (forest.ranks.columns().size() > kMaxColumns)
    return refused("", "the model's thresholds need " + std::to_string(forest.ranks.columns().size()) +
                           " columns of codes, at most " + std::to_string(kMaxColumns));
  return {};
}

}  // namespace forestvm::scheduler
