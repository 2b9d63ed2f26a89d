// The wide sparse layout: only the nodes that the tree has, each with both child indices (counted from the root's).
// A leaf's children are itself, so a walk may take more steps than the tree is deep. A node has 16 bytes. It is
// Treebeard's sparse representation (SilvanForge, section 6).
#pragma once

#include <cstdint>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/tile.hpp>
#include <forestvm/core/layout/tree_order.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

struct Sparse16View : TreesInSequence {
  struct alignas(16) Node {
    float value;            ///< Threshold of a split, or output of a leaf.
    std::uint32_t feature;  ///< Feature word: see kFeatureMask. A leaf's feature is 0.
    std::uint32_t left;
    std::uint32_t right;
  };
  static_assert(sizeof(Node) == 16);
  using Tree = const Node*;
  static constexpr unsigned kTileWidth = 1;
  static constexpr bool kLeavesAside = false;
  /// A walk may go on at a leaf: it stays there.
  static constexpr bool kLeavesHoldStill = true;

  FVM_INLINE static Tree tree(const GroupData& group, std::uint32_t index) {
    return reinterpret_cast<const Node*>(group.nodes) + group.trees[index].first_node;
  }
  FVM_INLINE static bool is_leaf(Tree tree, std::uint32_t at) { return (tree[at].feature & kLeaf) != 0; }
  FVM_INLINE static float value(Tree tree, std::uint32_t at) { return tree[at].value; }
  FVM_INLINE static std::uint64_t number_at(Tree, const TreeDesc& desc, std::uint32_t at) {
    return std::uint64_t{desc.first_node} + at;
  }
  FVM_INLINE static float threshold(Tree tree, std::uint32_t at, unsigned) { return tree[at].value; }
  FVM_INLINE static std::uint32_t feature_word(Tree tree, std::uint32_t at, unsigned) {
    return tree[at].feature;
  }
  FVM_INLINE static std::uint32_t child(Tree tree, std::uint32_t at, unsigned way) {
    return way == 0 ? tree[at].left : tree[at].right;
  }

  /// Takes one step.
  template <class Compare, class Row>
  FVM_INLINE static std::uint32_t next(Tree tree, std::uint32_t at, Row row) {
    const Node& node = tree[at];
    return goes_left(node.value, node.feature, row) ? node.left : node.right;
  }

  /// The rules of nodes. With them every walk stays inside the tree and the row, and ends.
  static constexpr const char* kNodeRules[] = {
      "a leaf tests a feature", "a leaf's children are not itself", "its feature lies outside the row",
      "a child does not come after its parent", "a child lies outside its tree"};
  static std::uint32_t broken_rules(Tree nodes, std::uint32_t slot, const TreeDesc& tree,
                                    const NodeFacts& facts) {
    const Node& node = nodes[slot];
    const std::uint32_t feature = node.feature, left = node.left, right = node.right;
    const std::uint32_t leaf = all_bits((feature & kLeaf) != 0), split = ~leaf;
    return rule_bit(0, leaf & all_bits(feature != kLeaf)) |
           rule_bit(1, leaf & (all_bits(left != slot) | all_bits(right != slot))) |
           rule_bit(2, split & all_bits((feature & kFeatureMask) >= facts.num_features)) |
           rule_bit(3, split & (all_bits(left <= slot) | all_bits(right <= slot))) |
           rule_bit(4, split & (all_bits(left >= tree.node_count) | all_bits(right >= tree.node_count)));
  }
};

}  // namespace forestvm
