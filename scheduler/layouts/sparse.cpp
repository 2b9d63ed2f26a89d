// Builds the sparse layout: the tree's own nodes in level order, so that the upper levels, which every row
// visits, share cache lines, and every child comes after its parent.
#include <forestvm/core/layout/sparse.hpp>

#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {

std::uint64_t slots_Sparse(const TreeShape& shape, std::uint32_t) { return shape.nodes; }

TreeDesc build_Sparse(const Tree& tree, const TreeShape& shape, std::uint32_t,
                      std::vector<std::byte>& nodes) {
  std::vector<SparseView::Node> placed;
  std::vector<std::int32_t> order{0};  // the model's node in each slot
  placed.reserve(shape.nodes);
  order.reserve(shape.nodes);
  for (std::uint32_t slot = 0; slot < order.size(); ++slot) {
    const Node& node = tree.nodes[static_cast<std::size_t>(order[slot])];
    if (node.kind == NodeKind::Leaf) {
      placed.push_back({leaf_output(tree, node), kLeaf, slot, slot});
      continue;
    }
    const auto child = static_cast<std::uint32_t>(order.size());
    placed.push_back({static_cast<float>(node.threshold), feature_word(node), child, child + 1});
    order.push_back(node.left);
    order.push_back(node.right);
  }
  append(nodes, placed);
  return {0, static_cast<std::uint32_t>(placed.size()), tree.output, shape.depth};
}

}  // namespace forestvm::scheduler
