// Builds the compact sparse layout, and says which trees it can hold.
#include <forestvm/core/layout/sparse8.hpp>

#include "scheduler/layouts/sparse.hpp"

namespace forestvm::scheduler {

using Node = Sparse8View::Node;

LayoutSize size_Sparse8(const TiledForest& forest, const TreeGroup& group) {
  return sparse_size<Node>(forest, group);
}

std::optional<std::string> why_not_Sparse8(const TiledForest& forest, const TreeGroup& group) {
  constexpr std::uint32_t kMaxFeatures = std::uint32_t{1} << Sparse8View::kFeatureBits;
  if (num_columns(forest.model()) > kMaxFeatures)
    return "its nodes have room for " + std::to_string(kMaxFeatures) + " features, the model has " +
           std::to_string(num_columns(forest.model()));
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
    if (const std::uint64_t size = forest.tree(group.tiling, t).size(); size > Sparse8View::kDistanceMask)
      return "its nodes reach children at most " + std::to_string(Sparse8View::kDistanceMask) +
             " nodes away, tree " + std::to_string(t) + " has " + std::to_string(size);
  return std::nullopt;
}

Result<BuiltGroup> build_Sparse8(const TiledForest& forest, const TreeGroup& group, const RankTable&) {
  return build_sparse<Node>(
      forest, group,
      [](float value, std::uint32_t) {
        return Node{value, kLeaf};
      },
      [](const Test& test, std::uint32_t slot, std::uint32_t child) {
        const std::uint32_t feature = test.feature & kFeatureMask;
        return Node{test.threshold,
                    (test.feature & kMissingLeft) | feature << Sparse8View::kDistanceBits | (child - slot)};
      });
}

}  // namespace forestvm::scheduler
