// The sparse layout in tiles. It has only the tiles that the tree has; a tile's children are adjacent, and leaves
// lie aside, so that a leaf takes 4 bytes and not a tile. A position in a tree is a tile's number or, with kLeaf, a
// leaf's number; a walk that has come to a leaf stays there. It is Treebeard's sparse representation of tiled
// trees.
#pragma once

#include <cstdint>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/tile.hpp>
#include <forestvm/core/layout/tree_order.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

template <unsigned Width>
struct SparseTilesView : TreesInSequence {
  struct Node {
    float thresholds[Width];
    std::uint32_t features[Width];  ///< Feature words without kLeaf.
    std::uint32_t first_tile;       ///< Index of the first child that is a tile.
    std::uint32_t first_leaf;       ///< Index of the first child that is a leaf.
    std::uint16_t shape;            ///< Row of the tile shapes.
    std::uint16_t leaf_exits;       ///< Bit i is set if exit i leads to a leaf.
  };
  static_assert(sizeof(Node) == 8 * Width + 12);
  static constexpr unsigned kTileWidth = Width;
  static constexpr bool kLeavesAside = true;
  static constexpr bool kLeavesHoldStill = true;

  struct Tree {
    const Node* tiles;
    const float* leaves;
    const std::uint8_t* exits;
  };

  FVM_INLINE static Tree tree(const GroupData& group, std::uint32_t index) {
    const TreeDesc& desc = group.trees[index];
    return {reinterpret_cast<const Node*>(group.nodes) + desc.first_node, group.leaves + desc.first_leaf,
            group.exits};
  }
  FVM_INLINE static bool is_leaf(const Tree&, std::uint32_t at) { return (at & kLeaf) != 0; }
  /// Returns the leaf's number in its tree. At a tile, where a walk of too few steps may end, it is the number
  /// of some leaf.
  FVM_INLINE static std::uint32_t leaf_at(std::uint32_t at) { return (at & kLeaf) != 0 ? at & ~kLeaf : 0; }
  FVM_INLINE static float value(const Tree& tree, std::uint32_t at) { return tree.leaves[leaf_at(at)]; }
  FVM_INLINE static std::uint64_t number_at(const Tree&, const TreeDesc& desc, std::uint32_t at) {
    return std::uint64_t{desc.first_leaf} + leaf_at(at);
  }
  FVM_INLINE static float threshold(const Tree& tree, std::uint32_t at, unsigned i) {
    return tree.tiles[at].thresholds[i];
  }
  FVM_INLINE static std::uint32_t feature_word(const Tree& tree, std::uint32_t at, unsigned i) {
    return tree.tiles[at].features[i];
  }
  FVM_INLINE static std::uint32_t shape(const Tree& tree, std::uint32_t at) { return tree.tiles[at].shape; }
  FVM_INLINE static std::uint32_t child(const Node& tile, unsigned exit) {
    const unsigned leaves_before = popcount(tile.leaf_exits & ((1u << exit) - 1));
    const bool leaf = (tile.leaf_exits >> exit & 1) != 0;
    return leaf ? (tile.first_leaf + leaves_before) | kLeaf : tile.first_tile + exit - leaves_before;
  }
  FVM_INLINE static std::uint32_t child(const Tree& tree, std::uint32_t at, unsigned exit) {
    return child(tree.tiles[at], exit);
  }

  template <class Compare, class Row>
  FVM_INLINE static std::uint32_t next(const Tree& tree, std::uint32_t at, Row row) {
    const bool leaf = (at & kLeaf) != 0;
    const Node& tile = tree.tiles[leaf ? 0 : at];
    const unsigned outcomes = Compare::template outcomes<Width>(tile.thresholds, tile.features, row);
    const std::uint32_t below = child(tile, tree.exits[(unsigned{tile.shape} << 8) + outcomes]);
    return leaf ? at : below;
  }

  static constexpr const char* kNodeRules[] = {
      FVM_TILE_RULES, "a leaf stands at an exit that its shape does not have", "a leaf lies outside its tree",
      "a child does not come after its parent", "a child lies outside its tree"};
  static std::uint32_t broken_rules(const Tree& tiles, std::uint32_t slot, const TreeDesc& tree,
                                    const NodeFacts& facts) {
    const Node& tile = tiles.tiles[slot];
    const unsigned exits = shape_size(tile.shape, facts) + 1u, leaves = popcount(tile.leaf_exits);
    const std::uint32_t goes_on = all_bits(leaves != exits);
    const std::uint32_t own =
        rule_bit(0, all_bits(tile.leaf_exits >> exits != 0)) |
        rule_bit(1, all_bits((leaves != 0) & (std::uint64_t{tile.first_leaf} + leaves > tree.leaf_count))) |
        rule_bit(2, goes_on & all_bits(tile.first_tile <= slot)) |
        rule_bit(3, goes_on & all_bits(std::uint64_t{tile.first_tile} + (exits - leaves) > tree.node_count));
    return broken_tile_rules(tile.features, tile.shape, facts) | own << kTileRules;
  }
};

}  // namespace forestvm
