// What the sparse layouts of single nodes that hold their leaves do: the tree's own nodes in an order that
// suits its walks, siblings adjacent and every child after its parent.
#pragma once

#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {

/// The size of a group all of whose trees' nodes and leaves are nodes.
template <class Node>
LayoutSize sparse_size(const TiledForest& forest, const TreeGroup& group) {
  LayoutSize size;
  for_trees(forest, group, [&](const GroupTree& at) { size.slots += at.tiled.size(); });
  size.bytes = size.slots * sizeof(Node);
  return size;
}

/// Training weight that came to a node of a tree in tiles of one node.
inline float cover_of(const Tree& tree, const TiledTree& tiled, TileChild at) {
  const std::int32_t node = at.is_leaf() ? at.leaf() : tiled.nodes[tiled.tiles[at.tile()].first_node];
  return tree.nodes[static_cast<std::size_t>(node)].cover;
}

/// Both children of a split of such a tree.
inline std::span<const TileChild, 2> children_of(const TiledTree& tiled, TileChild split) {
  return std::span<const TileChild, 2>(&tiled.children[tiled.tiles[split.tile()].first_child], 2);
}

/// Where the nodes of a tree stand: siblings adjacent, children after their parents.
struct SparseOrder {
  std::vector<TileChild> slots;         ///< what stands in each
  std::vector<std::uint32_t> children;  ///< by slot: that of the left child, 0 for leaves
};

/// Level by level, so that the upper levels, which every row visits, share lines. By probability a split's
/// likelier child is followed first, so that its children stand right behind it and a walk mostly goes on
/// where it is: it touches half as many cache lines.
SparseOrder sparse_order(const Tree& tree, const TiledTree& tiled, bool by_probability);

/// leaf(value, slot) and split(test, slot, left child's slot) make the nodes; slots are counted from the
/// root.
template <class Node, class MakeLeaf, class MakeSplit>
BuiltGroup build_sparse(const TiledForest& forest, const TreeGroup& group, MakeLeaf leaf, MakeSplit split) {
  GroupBuilder<Node> built(forest);
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
