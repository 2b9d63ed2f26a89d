// Builds the compact sparse layout, and says which trees it can hold.
#include <forestvm/core/layout/sparse8.hpp>
#include <forestvm/internal/formatted.hpp>

#include "scheduler/layouts/sparse.hpp"

namespace forestvm::scheduler {

Result<LayoutSize> size_Sparse8(const TiledForest& forest, const TreeGroup& group) {
  constexpr std::uint32_t kMaxFeatures = std::uint32_t{1} << Sparse8View::kFeatureBits;
  if (num_columns(forest.model()) > kMaxFeatures)
    return refused(formatted("its nodes have room for {} features, the model has {}", kMaxFeatures,
                             num_columns(forest.model())));
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
    if (const std::uint64_t size = forest.tree(group.tiling, t).size(); size > Sparse8View::kDistanceMask)
      return refused(formatted("its nodes reach children at most {} nodes away, tree {} has {}",
                               Sparse8View::kDistanceMask, t, size));
  return sparse_size<Sparse8Node>(forest, group);
}

Result<BuiltGroup> build_Sparse8(const TiledForest& forest, const TreeGroup& group, const RankTable&) {
  return build_sparse<Sparse8Node>(
      forest, group,
      [](float value, std::uint32_t) {
        return Sparse8Node{value, kLeaf};
      },
      [](const Test& test, std::uint32_t slot, std::uint32_t child) {
        const std::uint32_t feature = test.feature & kFeatureMask;
        return Sparse8Node{test.threshold, (test.feature & kMissingLeft) |
                                               feature << Sparse8View::kDistanceBits | (child - slot)};
      });
}

}  // namespace forestvm::scheduler
