// The sparse layout: only the nodes that the tree has, each with both child indices (counted from the
// root's). A leaf's children are itself, so a walk may take more hops than the tree is deep. 16 bytes a node.
// Treebeard's sparse representation (SilvanForge, section 6).
#pragma once

#include <cstdint>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/split.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

struct SparseView {
  struct Node {
    float value;            ///< split: threshold; leaf: output
    std::uint32_t feature;  ///< feature word, see forest_data.hpp; a leaf's feature is 0
    std::uint32_t left;
    std::uint32_t right;
  };
  static_assert(sizeof(Node) == 16);

  /// A walk may go on at a leaf: it stays there.
  static constexpr bool kLeavesHoldStill = true;

  FVM_INLINE static bool is_leaf(const Node* tree, std::uint32_t at) {
    return (tree[at].feature & kLeaf) != 0;
  }
  FVM_INLINE static float value(const Node* tree, std::uint32_t at) { return tree[at].value; }

  /// One hop.
  FVM_INLINE static std::uint32_t next(const Node* tree, std::uint32_t at, const float* row) {
    const Node& node = tree[at];
    return goes_left(node.value, node.feature, row) ? node.left : node.right;
  }

  /// What is wrong with a tree's record, or null.
  static const char* tree_rule(const TreeDesc& tree) {
    return tree.depth < tree.node_count ? nullptr : "it is deeper than it has nodes";
  }

  /// What is wrong with a slot, or null. With these rules every walk stays inside the tree and the row, and
  /// ends.
  static const char* node_rule(const Node& node, std::uint32_t slot, const TreeDesc& tree,
                               std::uint32_t num_features) {
    if ((node.feature & kLeaf) != 0) {
      if (node.feature != kLeaf) return "a leaf tests a feature";
      return node.left == slot && node.right == slot ? nullptr : "a leaf's children are not itself";
    }
    if ((node.feature & kFeatureMask) >= num_features) return "its feature lies outside the row";
    if (node.left <= slot || node.right <= slot) return "a child does not come after its parent";
    return node.left < tree.node_count && node.right < tree.node_count ? nullptr
                                                                       : "a child lies outside its tree";
  }
};

}  // namespace forestvm
