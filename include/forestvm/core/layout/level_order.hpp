// The level order that the array and reorg layouts share: children are found by counting. A leaf above the
// last level either ends the walk there (its flag is set) or is repeated below by the builder, for walks that
// take a fixed number of steps. A slot of a single node has 8 bytes. Placing says whether the trees of a group
// lie one after the other or interleaved node by node.
#pragma once

#include <cstdint>
#include <type_traits>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/tile.hpp>
#include <forestvm/core/layout/tree_order.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

/// Returns the number of slots of a complete tree in which every inner slot has `arity` children; UINT64_MAX
/// if they are more than any memory holds.
constexpr std::uint64_t level_order_slots(std::uint64_t arity, std::uint32_t depth) {
  std::uint64_t slots = 1;
  for (std::uint32_t level = 0; level < depth; ++level) {
    if (slots > (std::uint64_t{1} << 40)) return UINT64_MAX;
    slots = slots * arity + 1;
  }
  return slots;
}

/// Returns what is wrong with a level-order tree's record; null if nothing is.
inline const char* level_order_rule(const TreeDesc& tree, std::uint64_t arity) {
  return tree.node_count == level_order_slots(arity, tree.depth) ? nullptr
                                                                 : "its slots do not fill its depth";
}

/// The nodes of a tree, `stride` apart if the trees of the group are interleaved.
template <class Node, bool Interleaved>
struct LevelOrderTree {
  const Node* nodes;
  std::uint32_t stride;

  FVM_INLINE const Node& operator[](std::uint32_t at) const {
    if constexpr (Interleaved)
      return nodes[std::size_t{at} * stride];
    else
      return nodes[at];
  }
};

struct alignas(8) LevelOrderNode {  // aligned, so that a GPU reads it with one load
  float value;                      ///< Threshold of a split, or output of a leaf.
  std::uint32_t feature;            ///< Feature word: see kFeatureMask.
};
static_assert(sizeof(LevelOrderNode) == 8);

template <class Placing>
struct LevelOrderView : Placing {
  using Node = LevelOrderNode;
  static constexpr bool kInterleaved = std::is_same_v<Placing, TreesInterleaved>;
  using Tree = LevelOrderTree<Node, kInterleaved>;
  static constexpr unsigned kTileWidth = 1;
  static constexpr bool kLeavesAside = false;
  /// A walk must not take more steps than its tree is deep.
  static constexpr bool kLeavesHoldStill = false;

  FVM_INLINE static Tree tree(const GroupData& group, std::uint32_t index) {
    return {reinterpret_cast<const Node*>(group.nodes) + group.trees[index].first_node, group.tree_count};
  }
  FVM_INLINE static bool is_leaf(const Tree& tree, std::uint32_t at) {
    return (tree[at].feature & kLeaf) != 0;
  }
  FVM_INLINE static float value(const Tree& tree, std::uint32_t at) { return tree[at].value; }
  /// Returns the index of a leaf's number among the numbers of its group.
  FVM_INLINE static std::uint64_t number_at(const Tree& tree, const TreeDesc& desc, std::uint32_t at) {
    return desc.first_node + std::uint64_t{at} * (kInterleaved ? tree.stride : 1);
  }
  FVM_INLINE static float threshold(const Tree& tree, std::uint32_t at, unsigned) { return tree[at].value; }
  FVM_INLINE static std::uint32_t feature_word(const Tree& tree, std::uint32_t at, unsigned) {
    return tree[at].feature;
  }
  FVM_INLINE static std::uint32_t child(const Tree&, std::uint32_t at, unsigned branch) {
    return 2 * at + 1 + branch;
  }

  /// Takes one step.
  template <class Compare, class Row>
  FVM_INLINE static std::uint32_t next(const Tree& tree, std::uint32_t at, Row row) {
    const Node& node = tree[at];
    return child(tree, at, static_cast<unsigned>(!goes_left(node.value, node.feature, row)));
  }

  /// Returns what is wrong with a tree's record; null if nothing is.
  static const char* tree_rule(const TreeDesc& tree, const GroupDesc&) { return level_order_rule(tree, 2); }

  /// The rules of nodes. With them every walk stays inside the tree and the row, and ends.
  static constexpr const char* kNodeRules[] = {"its feature lies outside the row",
                                               "a slot of the last level is no leaf"};
  static std::uint32_t broken_rules(const Tree& nodes, std::uint32_t slot, const TreeDesc& tree,
                                    const NodeFacts& facts) {
    const std::uint32_t feature = nodes[slot].feature;
    const std::uint32_t last_level = all_bits(slot >= tree.node_count / 2);
    return rule_bit(0, all_bits((feature & kFeatureMask) >= facts.num_features)) |
           rule_bit(1, last_level & all_bits((feature & kLeaf) == 0));
  }
};

/// A tile, or a leaf, whose value is thresholds[0].
template <unsigned Width>
struct LevelOrderTile {
  float thresholds[Width];
  std::uint32_t features[Width];  ///< Feature words without kLeaf.
  std::uint32_t shape;            ///< Row of the tile shapes; kLeaf in leaves.
};

/// Level order in tiles: slot i's children are the slots from tile_size * i + i + 1 on, one for each exit.
template <unsigned Width, class Placing>
struct LevelOrderTilesView : Placing {
  using Node = LevelOrderTile<Width>;
  static constexpr bool kInterleaved = std::is_same_v<Placing, TreesInterleaved>;
  static constexpr unsigned kTileWidth = Width;
  static constexpr bool kLeavesAside = false;
  static constexpr bool kLeavesHoldStill = false;

  struct Tree : LevelOrderTree<Node, kInterleaved> {
    const std::uint8_t* exits;
    std::uint32_t arity;
  };

  FVM_INLINE static Tree tree(const GroupData& group, std::uint32_t index) {
    return {{reinterpret_cast<const Node*>(group.nodes) + group.trees[index].first_node, group.tree_count},
            group.exits,
            group.tile_size + 1};
  }
  FVM_INLINE static bool is_leaf(const Tree& tree, std::uint32_t at) { return (tree[at].shape & kLeaf) != 0; }
  FVM_INLINE static float value(const Tree& tree, std::uint32_t at) { return tree[at].thresholds[0]; }
  FVM_INLINE static std::uint64_t number_at(const Tree& tree, const TreeDesc& desc, std::uint32_t at) {
    return desc.first_node + std::uint64_t{at} * (kInterleaved ? tree.stride : 1);
  }
  FVM_INLINE static float threshold(const Tree& tree, std::uint32_t at, unsigned i) {
    return tree[at].thresholds[i];
  }
  FVM_INLINE static std::uint32_t feature_word(const Tree& tree, std::uint32_t at, unsigned i) {
    return tree[at].features[i];
  }
  FVM_INLINE static std::uint32_t shape(const Tree& tree, std::uint32_t at) { return tree[at].shape; }
  FVM_INLINE static std::uint32_t child(const Tree& tree, std::uint32_t at, unsigned branch) {
    return at * tree.arity + 1 + branch;
  }

  template <class Compare, class Row>
  FVM_INLINE static std::uint32_t next(const Tree& tree, std::uint32_t at, Row row) {
    const Node& tile = tree[at];
    const unsigned outcomes = Compare::template outcomes<Width>(tile.thresholds, tile.features, row);
    return child(tree, at, tree.exits[((tile.shape & ~kLeaf) << 8) + outcomes]);
  }

  static const char* tree_rule(const TreeDesc& tree, const GroupDesc& group) {
    return level_order_rule(tree, group.tile_size + 1u);
  }

  static constexpr const char* kNodeRules[] = {"a leaf tests a feature",
                                               "a slot of the last level is no leaf", FVM_TILE_RULES};
  static std::uint32_t broken_rules(const Tree& tiles, std::uint32_t slot, const TreeDesc& tree,
                                    const NodeFacts& facts) {
    const Node& tile = tiles[slot];
    if (tile.shape == kLeaf) {
      std::uint32_t tested = 0;
      for (const std::uint32_t feature : tile.features) tested |= feature;
      return rule_bit(0, all_bits(tested != 0));
    }
    const bool last_level = std::uint64_t{slot} * (facts.tile_size + 1) + 1 >= tree.node_count;
    return rule_bit(1, all_bits(last_level)) | broken_tile_rules(tile.features, tile.shape, facts) << 2;
  }
};

}  // namespace forestvm
