// Builds the sparse layout of tiles: tiles level by level, leaves aside in the order of their tiles.
#include <forestvm/core/layout/sparse_tiles.hpp>

#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {
namespace {

template <unsigned Width>
LayoutSize size(const TiledForest& forest, const TreeGroup& group) {
  LayoutSize size;
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t) {
    const TiledTree& tree = forest.tree(group.tiling, t);
    size.slots += tree.size();
    size.bytes +=
        tree.tiles.size() * sizeof(typename SparseTilesView<Width>::Node) + tree.leaves * sizeof(float);
  }
  return size;
}

template <unsigned Width>
BuiltGroup build_group(const TiledForest& forest, const TreeGroup& group) {
  BuiltGroup built;
  std::vector<typename SparseTilesView<Width>::Node> nodes;
  std::vector<float> leaves;
  for (std::uint32_t position = group.tree_begin; position < group.tree_end; ++position) {
    const Tree& tree = forest.model_tree(position);
    const TiledTree& tiled = forest.tree(group.tiling, position);
    TreeDesc desc = record_of(forest, position, tiled.depth);
    desc.first_node = static_cast<std::uint32_t>(nodes.size());
    desc.node_count = static_cast<std::uint32_t>(tiled.tiles.size());
    desc.first_leaf = static_cast<std::uint32_t>(leaves.size());
    desc.leaf_count = tiled.leaves;
    for (const Tile& tile : tiled.tiles) {
      typename SparseTilesView<Width>::Node node{};
      for (unsigned i = 0; i < tile.size; ++i) {
        const Test test = test_of(tree, tiled.nodes[tile.first_node + i]);
        node.thresholds[i] = test.threshold;
        node.features[i] = test.feature;
      }
      node.shape = tile.shape;
      node.first_leaf = static_cast<std::uint32_t>(leaves.size()) - desc.first_leaf;
      for (unsigned way = 0; way <= tile.size; ++way) {
        const TileChild child = tiled.children[tile.first_child + way];
        if (!child.is_leaf()) {
          if (node.first_tile == 0) node.first_tile = child.tile();
          continue;
        }
        node.leaf_ways = static_cast<std::uint16_t>(node.leaf_ways | 1u << way);
        set_number(built, forest, leaves.size(), tree, child.leaf());
        leaves.push_back(leaf_output(forest, tree, child.leaf()));
      }
      nodes.push_back(node);
    }
    built.trees.push_back(desc);
  }
  built.node_count = nodes.size();
  built.leaf_count = leaves.size();
  append(built.nodes, nodes);
  append(built.nodes, leaves);
  return built;
}

}  // namespace

#define FVM_SPARSE_TILES(Name, Width)                                                                     \
  LayoutSize size_##Name(const TiledForest& forest, const TreeGroup& group) {                             \
    return size<Width>(forest, group);                                                                    \
  }                                                                                                       \
  std::optional<std::string> misfit_##Name(const TiledForest&, const TreeGroup&) { return std::nullopt; } \
  BuiltGroup build_##Name(const TiledForest& forest, const TreeGroup& group) {                            \
    return build_group<Width>(forest, group);                                                             \
  }
FVM_SPARSE_TILES(SparseTiles4, 4)
FVM_SPARSE_TILES(SparseTiles8, 8)
#undef FVM_SPARSE_TILES

}  // namespace forestvm::scheduler
