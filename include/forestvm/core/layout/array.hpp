// The array layout: a tree's slots in level order, slot i's children at 2i+1 and 2i+2. A leaf above the last
// level either ends the walk there (its flag is set) or is repeated below by the builder, for walks that take
// a fixed number of hops. 8 bytes a slot. Treebeard's array representation (SilvanForge, section 6).
#pragma once

#include <cstdint>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

struct ArrayView {
  struct Node {
    float value;            ///< split: threshold; leaf: output
    std::uint32_t feature;  ///< feature word, see forest_data.hpp
  };
  static_assert(sizeof(Node) == 8);
  static constexpr Layout layout = Layout::Array;

  FVM_INLINE static bool is_leaf(const Node* tree, std::uint32_t at) {
    return (tree[at].feature & kLeaf) != 0;
  }
  FVM_INLINE static float value(const Node* tree, std::uint32_t at) { return tree[at].value; }

  /// One hop: left if x < threshold, or if x is missing and the node sends missing values left.
  FVM_INLINE static std::uint32_t next(const Node* tree, std::uint32_t at, const float* row) {
    const Node& node = tree[at];
    const float x = row[node.feature & kFeatureMask];
    const bool left = (x < node.value) | ((x != x) & ((node.feature & kMissingLeft) != 0));
    return 2 * at + 2 - static_cast<std::uint32_t>(left);
  }
};

}  // namespace forestvm
