// The rules for where the trees of a group lie, which several layouts share.
#pragma once

#include <cstdint>
#include <type_traits>

#include <forestvm/core/forest_data.hpp>

namespace forestvm {

/// Lays the nodes of each tree after the nodes of the tree before.
struct TreesInSequence {
  static const char* first_node_rule(const TreeDesc& tree, std::uint32_t, const GroupDesc& group,
                                     std::uint64_t nodes_before) {
    if (tree.first_node != nodes_before) return "it does not follow the tree before";
    return tree.node_count <= group.node_count - nodes_before ? nullptr : "it leaves its group";
  }
};

/// Lays trees of equal size so that node i of each tree lies beside node i of the others.
struct TreesInterleaved {
  static const char* first_node_rule(const TreeDesc& tree, std::uint32_t index, const GroupDesc& group,
                                     std::uint64_t) {
    if (tree.first_node != index) return "its root is not in its place among the group's roots";
    return std::uint64_t{tree.node_count} * (group.tree_end - group.tree_begin) == group.node_count
               ? nullptr
               : "its slots are not its part of the group's";
  }
};

/// True if node i of each tree lies beside node i of the others.
template <class View>
inline constexpr bool kInterleavesTrees = std::is_base_of_v<TreesInterleaved, View>;

}  // namespace forestvm
