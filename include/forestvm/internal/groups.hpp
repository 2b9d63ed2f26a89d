// The forest data of a program's groups.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <forestvm/core/layouts.hpp>
#include <forestvm/program.hpp>

namespace forestvm {

/// Returns the records of a group's trees, which lie in the trees section.
inline std::span<const TreeDesc> trees_of(const Program& program, const GroupDesc& group) {
  return program.trees().subspan(group.first_tree, group.tree_end - group.tree_begin);
}

/// Returns whether a group has its trees in the model's order.
inline bool has_trees_in_order(const Program& program, const GroupDesc& group) {
  return std::ranges::is_sorted(trees_of(program, group), {}, &TreeDesc::number);
}

/// Returns whether the program counts trees as the model does.
inline bool counts_as_model(const Program& program) {
  return std::ranges::all_of(program.groups(), [&](const GroupDesc& group) {
    std::uint32_t number = group.tree_begin;
    return std::ranges::all_of(trees_of(program, group),
                               [&](const TreeDesc& tree) { return tree.number == number++; });
  });
}

/// Returns what walks need to know of a group. Only walks of tiles read `exits`: see derived_tables.hpp.
inline GroupData group_data(const Program& program, const GroupDesc& group,
                            const std::uint8_t* exits = nullptr) {
  return group_data(group, program.nodes().data(), program.trees().data(), exits);
}

}  // namespace forestvm
