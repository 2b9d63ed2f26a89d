// The wide sparse layout: only the nodes that the tree has, each with both child indices (counted from the root's).
// A leaf's children are itself, so a walk may take more steps than the tree is deep. A node has 16 bytes. It is
// Treebeard's sparse representation (SilvanForge, section 6).
#pragma once

#include <cstdint>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/single_nodes.hpp>
#include <forestvm/core/layout/tile.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

struct alignas(16) Sparse16Node {
  float value;            ///< Threshold of a split, or output of a leaf.
  std::uint32_t feature;  ///< Feature word: see kFeatureMask. A leaf's feature is 0.
  std::uint32_t left;
  std::uint32_t right;
};
static_assert(sizeof(Sparse16Node) == 16);

struct Sparse16View : SingleNodes<Sparse16Node> {
  FVM_INLINE static bool is_leaf(Tree tree, std::uint32_t at) { return (tree[at].feature & kLeaf) != 0; }
  FVM_INLINE static std::uint32_t feature_word(Tree tree, std::uint32_t at, unsigned) {
    return tree[at].feature;
  }
  FVM_INLINE static std::uint32_t child(Tree tree, std::uint32_t at, unsigned branch) {
    return branch == 0 ? tree[at].left : tree[at].right;
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
