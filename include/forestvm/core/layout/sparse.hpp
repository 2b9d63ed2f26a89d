// The sparse layout: only the nodes that the tree has, each with both child indices (counted from the
// root's). A leaf's children are itself, so a walk may take more hops than the tree is deep. 16 bytes a node.
// Treebeard's sparse representation (SilvanForge, section 6).
#pragma once

#include <cstdint>

#include <forestvm/core/forest_data.hpp>
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
  static constexpr Layout layout = Layout::Sparse;

  FVM_INLINE static bool is_leaf(const Node* tree, std::uint32_t at) {
    return (tree[at].feature & kLeaf) != 0;
  }
  FVM_INLINE static float value(const Node* tree, std::uint32_t at) { return tree[at].value; }

  /// One hop: left if x < threshold, or if x is missing and the node sends missing values left.
  FVM_INLINE static std::uint32_t next(const Node* tree, std::uint32_t at, const float* row) {
    const Node& node = tree[at];
    const float x = row[node.feature & kFeatureMask];
    const bool left = (x < node.value) | ((x != x) & ((node.feature & kMissingLeft) != 0));
    return left ? node.left : node.right;
  }
};

}  // namespace forestvm
