// The part that sparse layouts share whose nodes are tested one by one, hold the outputs of leaves and lie tree after
// tree.
#pragma once

#include <cstdint>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/tree_order.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

/// A view's base. `value` of a NodeType is the threshold of a split, or the output of a leaf.
template <class NodeType>
struct SingleNodes : TreesInSequence {
  using Node = NodeType;
  using Tree = const Node*;
  static constexpr unsigned kTileWidth = 1;
  static constexpr bool kLeavesAside = false;
  /// A walk may go on at a leaf: it stays there.
  static constexpr bool kLeavesHoldStill = true;

  FVM_INLINE static Tree tree(const GroupData& group, std::uint32_t index) {
    return reinterpret_cast<const Node*>(group.nodes) + group.trees[index].first_node;
  }
  FVM_INLINE static float value(Tree tree, std::uint32_t at) { return tree[at].value; }
  FVM_INLINE static std::uint64_t number_at(Tree, const TreeDesc& desc, std::uint32_t at) {
    return std::uint64_t{desc.first_node} + at;
  }
  FVM_INLINE static float threshold(Tree tree, std::uint32_t at, unsigned) { return tree[at].value; }
};

}  // namespace forestvm
