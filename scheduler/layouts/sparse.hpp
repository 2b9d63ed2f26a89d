// What the sparse layouts of single nodes that hold their leaves do: the tree's own nodes in an order that
// suits its walks, siblings adjacent and every child after its parent.
#pragma once

#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {

/// Nodes of the group's trees.
inline std::uint64_t sparse_slots(const TiledForest& forest, const TreeGroup& group) {
  std::uint64_t slots = 0;
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
    slots += forest.tree(group.tiling, t).size();
  return slots;
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

/// leaf(value, slot) and split(test, slot, left child's slot) make the nodes.
template <class Node, class MakeLeaf, class MakeSplit>
BuiltGroup build_sparse(const TiledForest& forest, const TreeGroup& group, MakeLeaf leaf, MakeSplit split) {
  BuiltGroup built;
  for (std::uint32_t position = group.tree_begin; position < group.tree_end; ++position) {
    const Tree& tree = forest.model_tree(position);
    const TiledTree& tiled = forest.tree(group.tiling, position);
    const SparseOrder order = sparse_order(tree, tiled, group.tiling.by_probability);
    std::vector<Node> placed;
    placed.reserve(order.slots.size());
    for (std::uint32_t slot = 0; slot < order.slots.size(); ++slot) {
      const TileChild at = order.slots[slot];
      if (at.is_leaf()) {
        placed.push_back(leaf(leaf_output(forest, tree, at.leaf()), slot));
        set_number(built, forest, built.node_count + slot, tree, at.leaf());
      } else {
        const Test test = test_of(tree, tiled.nodes[tiled.tiles[at.tile()].first_node]);
        placed.push_back(split(test, slot, order.children[slot]));
      }
    }
    TreeDesc desc = record_of(forest, position, tiled.depth);
    desc.first_node = static_cast<std::uint32_t>(built.node_count);
    desc.node_count = static_cast<std::uint32_t>(placed.size());
    built.node_count += placed.size();
    built.trees.push_back(desc);
    append(built.nodes, placed);
  }
  return built;
}

}  // namespace forestvm::scheduler
