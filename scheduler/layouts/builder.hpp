// What a layout's builder gives: how many slots a tree takes, and its nodes. One pair of functions per row of
// layouts.def, each in layouts/<text>.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/tiled_forest.hpp"

namespace forestvm::scheduler {

#define FVM_LAYOUT(Name, text, View, meaning)                                                  \
  std::uint64_t slots_##Name(const TreeShape& shape, std::uint32_t pad_depth);                 \
  /** Appends one tree's nodes to `nodes` and says how it lies there; first_node is left 0. */ \
  TreeDesc build_##Name(const Tree& tree, const TreeShape& shape, std::uint32_t pad_depth,     \
                        std::vector<std::byte>& nodes);
#include <forestvm/core/layouts.def>

/// Bytes of a slot.
std::size_t node_size(Layout layout);

/// A leaf's output as the walkers add it: DART weight and value multiplied in float32.
inline float leaf_output(const Tree& tree, const Node& leaf) {
  return tree.weight * static_cast<float>(leaf.value);
}

/// A split's feature word.
inline std::uint32_t feature_word(const Node& split) {
  return split.feature | (split.missing_left ? kMissingLeft : 0u);
}

/// Appends a node to the bytes of a group.
template <class NodeType>
void append(std::vector<std::byte>& nodes, const std::vector<NodeType>& tree) {
  const auto bytes = std::as_bytes(std::span(tree));
  nodes.insert(nodes.end(), bytes.begin(), bytes.end());
}

}  // namespace forestvm::scheduler
