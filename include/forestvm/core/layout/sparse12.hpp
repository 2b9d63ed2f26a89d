// The sparse layout between sparse8 and sparse16. Siblings are adjacent, so that one child index is enough,
// and there is no limit on features or sizes of trees. A leaf's child is itself, so a walk may take more steps
// than the tree is deep. A node has 12 bytes.
#pragma once

#include <cstdint>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/single_nodes.hpp>
#include <forestvm/core/layout/tile.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

struct Sparse12Node {
  float value;            ///< Threshold of a split, or output of a leaf.
  std::uint32_t feature;  ///< Feature word: see kFeatureMask. A leaf's feature is 0.
  std::uint32_t left;     ///< Index of the left child; the right child follows it.
};
static_assert(sizeof(Sparse12Node) == 12);

struct Sparse12View : SingleNodes<Sparse12Node> {
  FVM_INLINE static bool is_leaf(Tree tree, std::uint32_t at) { return (tree[at].feature & kLeaf) != 0; }
  FVM_INLINE static std::uint32_t feature_word(Tree tree, std::uint32_t at, unsigned) {
    return tree[at].feature;
  }
  FVM_INLINE static std::uint32_t child(Tree tree, std::uint32_t at, unsigned branch) {
    return tree[at].left + branch;
  }

  /// Takes one step.
  template <class Compare, class Row>
  FVM_INLINE static std::uint32_t next(Tree tree, std::uint32_t at, Row row) {
    const Node& node = tree[at];
    const bool right = !goes_left(node.value, node.feature, row) & ((node.feature & kLeaf) == 0);
    return node.left + static_cast<std::uint32_t>(right);
  }

  static constexpr const char* kNodeRules[] = {
      "a leaf tests a feature or has children", "its feature lies outside the row",
      "a child does not come after its parent", "a child lies outside its tree"};
  static std::uint32_t broken_rules(Tree nodes, std::uint32_t slot, const TreeDesc& tree,
                                    const NodeFacts& facts) {
    const std::uint32_t feature = nodes[slot].feature, left = nodes[slot].left;
    const std::uint32_t leaf = all_bits((feature & kLeaf) != 0), split = ~leaf;
    return rule_bit(0, leaf & (all_bits(feature != kLeaf) | all_bits(left != slot))) |
           rule_bit(1, split & all_bits((feature & kFeatureMask) >= facts.num_features)) |
           rule_bit(2, split & all_bits(left <= slot)) |
           rule_bit(3, split & all_bits(left >= tree.node_count - 1));
  }
};

}  // namespace forestvm
