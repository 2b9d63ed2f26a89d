// The tree tables layout, for rank-coded rows and small trees: the tables layout with all tests of a tree in
// one level. A walk loads its tables once, and reads less memory on its way. It is for calls of few rows and
// forests of many small trees. With many rows the tables layout is better, because a level's own tables use
// fewer columns.
#pragma once

#include <cstdint>

#include <forestvm/core/layout/tables.hpp>

namespace forestvm {

struct TreeTablesView : TablesView {
  FVM_INLINE static Tree tree(const GroupData& group, std::uint32_t index) {
    Tree found = TablesView::tree(group, index);
    found.oblivious = false;  // never, whatever its number of lines
    return found;
  }

  static const char* tree_rule(const TreeDesc& tree, const GroupDesc&) {
    if (tree.leaf_count == 0 || tree.leaf_count > kMaxTreeSlots + 1)
      return "it has no leaves, or more than 65";
    return (tree.depth == 0) == (tree.leaf_count == 1) ? nullptr : "its depth is not that of its leaves";
  }

  static constexpr std::uint32_t levels(const TreeDesc& tree) { return tree.depth == 0 ? 0 : 1; }

  /// Returns the number of columns and slots of tables that a walk of a row looks into.
  static std::uint64_t lookups(const Tree& tree, const TreeDesc& desc) {
    if (desc.depth == 0) return 0;
    return std::uint64_t{desc.depth} * (std::uint64_t{tree.level(0).columns} + tree.level(0).slots);
  }

  /// Returns what is wrong with a tree's level; null if nothing is. With these rules every lookup stays
  /// inside its table, and each slot and leaf is reached on one way, the deepest leaf by as many steps as the
  /// tree is deep.
  static const char* level_rule(const Tree& tree, std::uint32_t, const TreeDesc& desc, const NodeFacts& facts,
                                LevelsAbove& above) {
    const TableLevel& level = tree.level(0);
    const std::uint32_t slots = level.slots;
    if (!level.is_tree()) return "it is not the tables of a tree";
    if (slots + 1 != desc.leaf_count) return "it has not one test less than its tree has leaves";
    std::uint32_t children = 0;
    if (const char* const rule = tables_rule(tree, level, desc, facts, above, children)) return rule;
    const LevelTables tables(tree.lines, level);
    std::uint8_t steps[kMaxTreeSlots] = {};  // steps from the root; slots are in order of depth
    std::uint32_t next_slot = 1, next_leaf = slots;
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      if (slot >= next_slot) return "no slot before leads to a slot";
      const std::uint32_t left = tables.child[slot], both[] = {left, (left + tables.by[slot]) & 255};
      const auto below = static_cast<std::uint8_t>(steps[slot] + 1);
      for (const std::uint32_t child : both) {
        if (child != (child < slots ? next_slot++ : next_leaf++)) return kNotNext;
        if (child < slots) steps[child] = below;
      }
    }
    return steps[slots - 1] + 1u == desc.depth ? nullptr : "its depth is not that of its deepest leaf";
  }
};

}  // namespace forestvm
