// Builds the sparse layout of tiles: tiles level by level, leaves aside in the order of their tiles.
#include <forestvm/core/layout/sparse_tiles.hpp>

#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {
namespace {

template <unsigned Width>
using NodeOf = typename SparseTilesView<Width>::Node;

template <unsigned Width>
LayoutSize size(const TiledForest& forest, const TreeGroup& group) {
  LayoutSize size;
  for_trees(forest, group, [&](const GroupTree& at) {
    size.slots += at.tiled.size();
    size.bytes += at.tiled.tiles.size() * sizeof(NodeOf<Width>) + at.tiled.leaves * sizeof(float);
  });
  return size;
}

template <unsigned Width>
BuiltGroup build_group(const TiledForest& forest, const TreeGroup& group) {
  GroupBuilder<NodeOf<Width>> built(forest);
  built.add_trees(group, [&](const GroupTree& at, std::uint32_t first_leaf) {
    for (const Tile& tile : at.tiled.tiles) {
      NodeOf<Width> node{};
      for (unsigned i = 0; i < tile.size; ++i) {
        const Test test = test_of(at.tree, at.tiled.nodes[tile.first_node + i]);
        node.thresholds[i] = test.threshold;
        node.features[i] = test.feature;
      }
      node.shape = tile.shape;
      node.first_leaf = static_cast<std::uint32_t>(built.leaves.size()) - first_leaf;
      for (unsigned exit = 0; exit <= tile.size; ++exit) {
        const TileChild child = at.tiled.children[tile.first_child + exit];
        if (!child.is_leaf()) {
          if (node.first_tile == 0) node.first_tile = child.tile();
          continue;
        }
        node.leaf_exits = static_cast<std::uint16_t>(node.leaf_exits | 1u << exit);
        built.add_leaf(at, child);
      }
      built.nodes.push_back(node);
    }
  });
  return built.finish();
}

}  // namespace

#define FVM_SPARSE_TILES(Name, Width)                                                                    \
  Result<LayoutSize> size_##Name(const TiledForest& forest, const TreeGroup& group) {                    \
    return size<Width>(forest, group);                                                                   \
  }                                                                                                      \
  Result<BuiltGroup> build_##Name(const TiledForest& forest, const TreeGroup& group, const RankTable&) { \
    return build_group<Width>(forest, group);                                                            \
  }
FVM_SPARSE_TILES(SparseTiles4, 4)
FVM_SPARSE_TILES(SparseTiles8, 8)
#undef FVM_SPARSE_TILES

}  // namespace forestvm::scheduler
