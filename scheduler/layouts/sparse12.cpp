// Builds the sparse layout of 12-byte nodes.
#include <forestvm/core/layout/sparse12.hpp>

#include "scheduler/layouts/sparse.hpp"

namespace forestvm::scheduler {

using Node = Sparse12View::Node;

LayoutSize size_Sparse12(const TiledForest& forest, const TreeGroup& group) {
  const std::uint64_t slots = sparse_slots(forest, group);
  return {slots, slots * sizeof(Node)};
}

std::optional<std::string> misfit_Sparse12(const TiledForest&, const TreeGroup&) { return std::nullopt; }

BuiltGroup build_Sparse12(const TiledForest& forest, const TreeGroup& group) {
  return build_sparse<Node>(
      forest, group,
      [](float value, std::uint32_t slot) {
        return Node{value, kLeaf, slot};
      },
      [](const Test& test, std::uint32_t, std::uint32_t child) {
        return Node{test.threshold, test.feature, child};
      });
}

}  // namespace forestvm::scheduler
