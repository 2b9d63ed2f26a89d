// The sparse layouts whose leaves are nodes too: siblings are adjacent, every child is after its parent, and
// the order suits the walks.
#pragma once

#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {

/// Returns the size of a group in which leaves are nodes, too.
template <class Node>
LayoutSize sparse_size(const TiledForest& forest, const TreeGroup& group) {
  LayoutSize size;
  for_trees(forest, group, [&](const GroupTree& at) { size.slots += at.tiled.size(); });
  size.bytes = size.slots * sizeof(Node);
  return size;
}

/// Returns the cover (training weight) of a node, where tiles have one node.
inline float cover_of(const Tree& tree, const TiledTree& tiled, TileChild at) {
  const std::int32_t node = at.is_leaf() ? at.leaf() : tiled.nodes[tiled.tiles[at.tile()].first_node];
  return tree.nodes[static_cast<std::size_t>(node)].cover;
}

/// The order of a tree's nodes: siblings adjacent, children after their parents.
struct SparseOrder {
  std::vector<TileChild> slots;         ///< the node in each slot
  std::vector<std::uint32_t> children;  ///< the slot of each node's left child; 0 for leaves
};

/// Orders a tree's nodes level by level, or by probability. Level by level, the upper levels, which every row
/// visits, share cache lines. By probability, a split's likelier child is followed first: its children are right
/// behind it, and a walk touches half as many cache lines.
SparseOrder sparse_order(const Tree& tree, const TiledTree& tiled, bool by_probability);

/// Builds a group. leaf(value, slot) and split(test, slot, left child's slot) make the nodes; slots are counted
/// from the root.
template <class Node, class MakeLeaf, class MakeSplit>
BuiltGroup build_sparse(const TiledForest& forest, const TreeGroup& group, MakeLeaf leaf, MakeSplit split) {
  GroupBuilder<Node> built(forest);
  built.nodes.reserve(sparse_size<Node>(forest, group).slots);
  built.add_trees(group, [&](const GroupTree& at, std::uint32_t) {
    const SparseOrder order = sparse_order(at.tree, at.tiled, group.tiling.by_probability);
    for (std::uint32_t slot = 0; slot < order.slots.size(); ++slot) {
      const TileChild node = order.slots[slot];
      built.nodes.push_back(node.is_leaf() ? leaf(built.number_next_node(at, node), slot)
                                           : split(at.test(node), slot, order.children[slot]));
    }
  });
  return built.finish();
}

}  // namespace forestvm::scheduler
