// The array layout: a tree's slots in level order, slot i's children at 2i+1 and 2i+2. A leaf above the last
// level either ends the walk there (its flag is set) or is repeated below by the builder, for walks that take
// a fixed number of hops. 8 bytes a slot. Treebeard's array representation (SilvanForge, section 6).
#pragma once

#include <cstdint>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/split.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

struct ArrayView {
  struct Node {
    float value;            ///< split: threshold; leaf: output
    std::uint32_t feature;  ///< feature word, see forest_data.hpp
  };
  static_assert(sizeof(Node) == 8);

  /// A walk must not take more hops than its tree is deep.
  static constexpr bool kLeavesHoldStill = false;
  static constexpr std::uint32_t kMaxDepth = 26;  ///< 2^27 - 1 slots are 1 GiB

  FVM_INLINE static bool is_leaf(const Node* tree, std::uint32_t at) {
    return (tree[at].feature & kLeaf) != 0;
  }
  FVM_INLINE static float value(const Node* tree, std::uint32_t at) { return tree[at].value; }

  /// One hop.
  FVM_INLINE static std::uint32_t next(const Node* tree, std::uint32_t at, const float* row) {
    return 2 * at + 2 - static_cast<std::uint32_t>(goes_left(tree[at].value, tree[at].feature, row));
  }

  /// What is wrong with a tree's record, or null.
  static const char* tree_rule(const TreeDesc& tree) {
    if (tree.depth > kMaxDepth) return "an array tree cannot be that deep";
    return tree.node_count == (std::uint32_t{2} << tree.depth) - 1 ? nullptr
                                                                   : "its slots do not fill its depth";
  }

  /// What is wrong with a slot, or null. With these rules every walk stays inside the tree and the row, and
  /// ends.
  static const char* node_rule(const Node& node, std::uint32_t slot, const TreeDesc& tree,
                               std::uint32_t num_features) {
    if ((node.feature & kFeatureMask) >= num_features) return "its feature lies outside the row";
    const bool last_level = slot >= tree.node_count / 2;
    return last_level && (node.feature & kLeaf) == 0 ? "a slot of the last level is no leaf" : nullptr;
  }
};

}  // namespace forestvm
