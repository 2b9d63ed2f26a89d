// Builds the sparse layout of 12-byte nodes.
#include <forestvm/core/layout/sparse12.hpp>

#include "scheduler/layouts/sparse.hpp"

namespace forestvm::scheduler {

Result<LayoutSize> size_Sparse12(const TiledForest& forest, const TreeGroup& group) {
  return sparse_size<Sparse12Node>(forest, group);
}

Result<BuiltGroup> build_Sparse12(const TiledForest& forest, const TreeGroup& group, const RankTable&) {
  return build_sparse<Sparse12Node>(
      forest, group,
      [](float value, std::uint32_t slot) {
        return Sparse12Node{value, kLeaf, slot};
      },
      [](const Test& test, std::uint32_t, std::uint32_t child) {
        return Sparse12Node{test.threshold, test.feature, child};
      });
}

}  // namespace forestvm::scheduler
