// Builds the wide sparse layout.
#include <forestvm/core/layout/sparse16.hpp>

#include "scheduler/layouts/sparse.hpp"

namespace forestvm::scheduler {

Result<LayoutSize> size_Sparse16(const TiledForest& forest, const TreeGroup& group) {
  return sparse_size<Sparse16Node>(forest, group);
}

Result<BuiltGroup> build_Sparse16(const TiledForest& forest, const TreeGroup& group, const RankTable&) {
  return build_sparse<Sparse16Node>(
      forest, group,
      [](float value, std::uint32_t slot) {
        return Sparse16Node{value, kLeaf, slot, slot};
      },
      [](const Test& test, std::uint32_t, std::uint32_t child) {
        return Sparse16Node{test.threshold, test.feature, child, child + 1};
      });
}

}  // namespace forestvm::scheduler
