// Builds the array layout: slots in level order. A leaf above the last level is repeated in every slot below
// it, so that a walk which does not look for leaves arrives at the same output.
#include <forestvm/core/layout/array.hpp>

#include <algorithm>

#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {

std::uint64_t slots_Array(const TreeShape& shape, std::uint32_t pad_depth) {
  const std::uint32_t depth = std::max(shape.depth, pad_depth);
  return depth >= 62 ? UINT64_MAX : (std::uint64_t{2} << depth) - 1;
}

TreeDesc build_Array(const Tree& tree, const TreeShape& shape, std::uint32_t pad_depth,
                     std::vector<std::byte>& nodes) {
  const std::uint32_t count = static_cast<std::uint32_t>(slots_Array(shape, pad_depth));
  std::vector<ArrayView::Node> slots(count);
  std::vector<std::int32_t> at(count);  // the model's node in each slot
  for (std::uint32_t slot = 0; slot < count; ++slot) {
    const Node& node = tree.nodes[static_cast<std::size_t>(at[slot])];
    const bool leaf = node.kind == NodeKind::Leaf;
    slots[slot] = leaf ? ArrayView::Node{leaf_output(tree, node), kLeaf}
                       : ArrayView::Node{static_cast<float>(node.threshold), feature_word(node)};
    if (2 * slot + 2 < count) {
      at[2 * slot + 1] = leaf ? at[slot] : node.left;
      at[2 * slot + 2] = leaf ? at[slot] : node.right;
    }
  }
  append(nodes, slots);
  return {0, count, tree.output, std::max(shape.depth, pad_depth)};
}

}  // namespace forestvm::scheduler
