// The compact sparse layout. It has only the nodes that the tree has; siblings are adjacent, and a node's
// left child is found by its distance. It takes half the memory of sparse16, which matters for deep forests;
// a tree's features and distances must fit its bits. A leaf is at distance 0 from itself, so a walk may take
// more steps than the tree is deep. A node has 8 bytes.
#pragma once

#include <cstdint>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/single_nodes.hpp>
#include <forestvm/core/layout/tile.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

struct alignas(8) Sparse8Node {
  float value;         ///< Threshold of a split, or output of a leaf.
  std::uint32_t word;  ///< Flags kLeaf and kMissingLeft, the feature, the distance to the left child.
};
static_assert(sizeof(Sparse8Node) == 8);

struct Sparse8View : SingleNodes<Sparse8Node> {
  static constexpr unsigned kFeatureBits = 12, kDistanceBits = 18;
  static constexpr std::uint32_t kDistanceMask = (std::uint32_t{1} << kDistanceBits) - 1;
  /// The word of each leaf.
  static constexpr std::uint32_t kLeafWord = kLeaf;

  FVM_INLINE static bool is_leaf(Tree tree, std::uint32_t at) { return (tree[at].word & kLeaf) != 0; }
  FVM_INLINE static std::uint32_t feature_word(std::uint32_t word) {
    return (word & (kLeaf | kMissingLeft)) | ((word & ~(kLeaf | kMissingLeft)) >> kDistanceBits);
  }
  FVM_INLINE static std::uint32_t feature_word(Tree tree, std::uint32_t at, unsigned) {
    return feature_word(tree[at].word);
  }
  FVM_INLINE static std::uint32_t child(Tree tree, std::uint32_t at, unsigned branch) {
    return at + (tree[at].word & kDistanceMask) + branch;
  }

  /// Takes one step.
  template <class Compare, class Row>
  FVM_INLINE static std::uint32_t next(Tree tree, std::uint32_t at, Row row) {
    const Node& node = tree[at];
    const bool right = !goes_left(node.value, feature_word(node.word), row) & ((node.word & kLeaf) == 0);
    return at + (node.word & kDistanceMask) + static_cast<std::uint32_t>(right);
  }

  static constexpr const char* kNodeRules[] = {
      "a leaf tests a feature or has children", "its feature lies outside the row",
      "a child does not come after its parent", "a child lies outside its tree"};
  static std::uint32_t broken_rules(Tree nodes, std::uint32_t slot, const TreeDesc& tree,
                                    const NodeFacts& facts) {
    const std::uint32_t word = nodes[slot].word, distance = word & kDistanceMask;
    const std::uint32_t leaf = all_bits((word & kLeaf) != 0), split = ~leaf;
    return rule_bit(0, leaf & all_bits(word != kLeafWord)) |
           rule_bit(1, split & all_bits((feature_word(word) & kFeatureMask) >= facts.num_features)) |
           rule_bit(2, split & all_bits(distance == 0)) |
           rule_bit(3, split & all_bits(distance >= tree.node_count - 1 - slot));
  }
};

}  // namespace forestvm
