// What both sparse layouts of single nodes do: the tree's own nodes in level order, so that the upper levels,
// which every row visits, share cache lines, siblings are adjacent and every child comes after its parent.
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

/// leaf(value, slot) and split(test, slot, left child's slot) make the nodes.
template <class Node, class MakeLeaf, class MakeSplit>
BuiltGroup build_sparse(const TiledForest& forest, const TreeGroup& group, MakeLeaf leaf, MakeSplit split) {
  BuiltGroup built;
  for (std::uint32_t position = group.tree_begin; position < group.tree_end; ++position) {
    const Tree& tree = forest.model_tree(position);
    const TiledTree& tiled = forest.tree(group.tiling, position);
    std::vector<Node> placed;
    std::vector<TileChild> order{tiled.root};  // what stands in each slot
    placed.reserve(tiled.size());
    order.reserve(tiled.size());
    for (std::uint32_t slot = 0; slot < order.size(); ++slot) {
      const TileChild at = order[slot];
      if (at.is_leaf()) {
        placed.push_back(leaf(leaf_output(forest, tree, at.leaf()), slot));
        set_number(built, forest, built.node_count + slot, tree, at.leaf());
        continue;
      }
      const Tile& tile = tiled.tiles[at.tile()];
      placed.push_back(
          split(test_of(tree, tiled.nodes[tile.first_node]), slot, static_cast<std::uint32_t>(order.size())));
      order.push_back(tiled.children[tile.first_child]);
      order.push_back(tiled.children[tile.first_child + 1]);
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
