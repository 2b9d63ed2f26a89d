// The tables layout, for rank-coded rows and trees of up to 256 leaves. Each level of a tree is a set of
// tables of bytes, indexed by a walk's slot in the level, so that a vector of rows takes a step by
// table lookups in registers. Leaves lie aside.
//
// A leaf above the last level is repeated in the levels below it, until there are too many. Then a level
// retires all leaves that it leads to: they have no slots in the levels below. A walk that reaches one of them
// has ended: its slot becomes the leaf's number and stays so. Leaves are numbered from the lowest level
// upwards, so that the leaves that a level retires have larger numbers than all slots and leaves below.
//
// A tree is stored in lines of 16 bytes. First comes a TableLevel for each level. The tables of a level begin
// at the line that its TableLevel names:
//   - the columns that its tests use, as byte offsets into a block of codes, with copies of the first column up
//     to a multiple of 4;
//   - each slot's column, as its number in that list, unless there is only one column;
//   - each slot's code;
//   - each slot's left child in the level below, unless all slots are tests;
//   - how much higher the slot of each right child is than that of the left one, if the level retires leaves.
//
// In the tree tables layout a small tree is one level, with a slot for each of its tests. Its children are
// slots of the same level or, from the number of slots on, the leaves; a walk takes the same step as often as
// the tree is deep. Slots and leaves are numbered from the root downwards.
//
// A tree is oblivious, as CatBoost grows them, if all slots of a level make the same test: the results of the
// tests are the bits of a leaf's number. Its levels have no tables; their records hold the column and the
// code.
#pragma once

#include <bit>
#include <cstdint>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/tile.hpp>
#include <forestvm/core/layout/tree_order.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

inline constexpr unsigned kMaxTableLeaves = 256;  ///< Most leaves of a tree.
inline constexpr unsigned kMaxTableSlots = 128;   ///< Most slots of a level.
inline constexpr unsigned kMaxTreeSlots = 64;     ///< Most slots of a level that is a tree.
/// Number of lines that a group has after the last line of its last tree: a lookup may load this many lines from
/// the beginning of any table.
inline constexpr unsigned kTableSlack = kMaxTableSlots / 16;

struct TableLine {
  std::uint8_t bytes[16];
};

/// The kinds of levels, which tell a walk how to go on. The code for one kind can also walk levels of the
/// kinds before it that have tables.
enum class LevelKind : std::uint8_t {
  OneTest = 0,   ///< Every slot makes the same test, otherwise like Tests: a level of an oblivious tree.
  Tests = 1,     ///< Every slot i is a test, whose children are 2i and 2i + 1; no walk has ended.
  Mixed = 2,     ///< Some slots are leaves, and a table holds the children; no walk has ended.
  Later = 3,     ///< Like Mixed, but below a level that retires leaves: walks may have ended.
  Retiring = 4,  ///< Retires all leaves that it leads to, so that the level below has only tests.
  Tree = 5,      ///< Like Retiring, but the level below is this one; only in tree tables.
};

struct TableLevel {
  std::uint16_t slots;   ///< Number of slots: 1 … 128.
  std::uint8_t columns;  ///< Number of different columns of its tests, 1 … 128; in OneTest the code.
  LevelKind kind;
  /// First line of its tables, counted from the tree's first; in OneTest the column's byte offset.
  std::uint32_t line;

  FVM_INLINE bool has_tables() const { return kind != LevelKind::OneTest; }
  FVM_INLINE bool all_tests() const { return kind <= LevelKind::Tests; }
  FVM_INLINE bool is_tree() const { return kind == LevelKind::Tree; }
  FVM_INLINE bool retires() const { return kind >= LevelKind::Retiring; }
  // These return the test of a level whose slots all make the same one: its code, and its column as a byte offset
  // into a block of codes.
  FVM_INLINE std::uint8_t code() const { return columns; }
  FVM_INLINE std::uint32_t offset() const { return line; }

  /// Returns the bytes of the list of columns.
  FVM_INLINE std::uint32_t list_bytes() const { return (columns + 3u) / 4 * 16; }
  /// Returns the bytes of one table.
  FVM_INLINE std::uint32_t table_bytes() const { return (slots + 15u) / 16 * 16; }
  FVM_INLINE std::uint32_t tables() const {
    return 1u + (columns > 1 ? 1u : 0u) + (all_tests() ? 0u : 1u) + (retires() ? 1u : 0u);
  }
};
static_assert(sizeof(TableLevel) == 8);

/// Returns the number of lines of 16 bytes that the records of `levels` levels take.
FVM_INLINE std::uint32_t table_header_lines(std::uint32_t levels) { return (levels + 1) / 2; }

/// The addresses of a level's tables. They are meaningless where the level lacks a table.
struct LevelTables {
  const std::uint32_t* list;   ///< Byte offsets of columns into a block of codes.
  const std::uint8_t* column;  ///< Number of each slot's column in the list.
  const std::uint8_t* code;    ///< Code of each slot.
  const std::uint8_t* child;   ///< Left child of each slot.
  const std::uint8_t* by;      ///< Distance from the left child of each slot to the right one.

  FVM_INLINE LevelTables(const TableLine* lines, const TableLevel& level) {
    const std::uint8_t* at = lines[level.line].bytes;
    list = reinterpret_cast<const std::uint32_t*>(at);
    at += level.list_bytes();
    column = at;
    if (level.columns > 1) at += level.table_bytes();
    code = at;
    child = at + level.table_bytes();
    by = child + level.table_bytes();
  }
};

struct TablesView : TreesInSequence {
  using Node = TableLine;
  static constexpr unsigned kTileWidth = 1;
  static constexpr bool kLeavesAside = true;
  static constexpr bool kLeavesHoldStill = true;
  static constexpr bool kCoded = true;

  struct Tree {
    const TableLine* lines;
    const float* leaves;
    std::uint32_t depth;
    bool oblivious;

    FVM_INLINE const TableLevel& level(std::uint32_t i) const {
      return reinterpret_cast<const TableLevel*>(lines)[i];
    }
  };

  // A position in a tree is a level and a slot in it; for a leaf it is the level below the last and the leaf's
  // number.
  static constexpr unsigned kSlotBits = 9;
  FVM_INLINE static std::uint32_t level_of(std::uint32_t at) { return at >> kSlotBits; }
  FVM_INLINE static std::uint32_t slot_of(std::uint32_t at) { return at & ((1u << kSlotBits) - 1); }

  FVM_INLINE static Tree tree(const GroupData& group, std::uint32_t index) {
    const TreeDesc& desc = group.trees[index];
    return {reinterpret_cast<const TableLine*>(group.nodes) + desc.first_node, group.leaves + desc.first_leaf,
            desc.depth, is_oblivious(desc)};
  }
  /// Returns whether a tree is oblivious: it has levels, but no tables.
  FVM_INLINE static bool is_oblivious(const TreeDesc& desc) {
    return desc.depth != 0 && desc.node_count == table_header_lines(desc.depth);
  }
  FVM_INLINE static bool is_leaf(const Tree& tree, std::uint32_t at) { return level_of(at) == tree.depth; }
  FVM_INLINE static float value(const Tree& tree, std::uint32_t at) { return tree.leaves[slot_of(at)]; }
  FVM_INLINE static std::uint64_t number_at(const Tree&, const TreeDesc& desc, std::uint32_t at) {
    return std::uint64_t{desc.first_leaf} + slot_of(at);
  }
  FVM_INLINE static std::uint32_t column(const Tree& tree, std::uint32_t at) {
    const TableLevel& level = tree.level(level_of(at));
    if (!level.has_tables()) return level.offset() / kCodeRows;
    const LevelTables tables(tree.lines, level);
    return tables.list[level.columns > 1 ? tables.column[slot_of(at)] : 0] / kCodeRows;
  }
  FVM_INLINE static std::uint8_t code(const Tree& tree, std::uint32_t at) {
    const TableLevel& level = tree.level(level_of(at));
    return level.has_tables() ? LevelTables(tree.lines, level).code[slot_of(at)] : level.code();
  }
  /// Returns the position of the test or leaf to which a branch leads, past the repetitions of a leaf.
  FVM_INLINE static std::uint32_t child(const Tree& tree, std::uint32_t at, unsigned branch) {
    std::uint32_t level = level_of(at), slot = slot_of(at);
    for (;;) {
      const TableLevel& l = tree.level(level);
      if (l.all_tests()) {
        slot = 2 * slot + branch;
      } else {
        const LevelTables tables(tree.lines, l);
        const std::uint32_t by = l.retires() ? tables.by[slot] : 1;
        slot = (tables.child[slot] + branch * by) & 255;
      }
      if (l.is_tree()) return slot < l.slots ? slot : tree.depth << kSlotBits | (slot - l.slots);
      ++level;
      if (level == tree.depth || slot >= tree.level(level).slots) return tree.depth << kSlotBits | slot;
      const std::uint32_t below = level << kSlotBits | slot;
      if (code(tree, below) != kNeverRight) return below;
      branch = 0;
    }
  }

  /// Takes one step of a row that has these codes: see code_of.
  template <class Compare, class Codes>
  FVM_INLINE static std::uint32_t next(const Tree& tree, std::uint32_t at, const Codes& codes) {
    if (is_leaf(tree, at)) return at;
    const std::uint8_t x = code_of(codes, column(tree, at));
    return child(tree, at, static_cast<unsigned>(x > code(tree, at)));
  }

  static const char* first_node_rule(const TreeDesc& tree, std::uint32_t index, const GroupDesc& group,
                                     std::uint64_t nodes_before) {
    if (const char* rule = TreesInSequence::first_node_rule(tree, index, group, nodes_before)) return rule;
    return group.node_count - nodes_before - tree.node_count >= kTableSlack
               ? nullptr
               : "its group ends too soon after its tables";
  }

  static const char* tree_rule(const TreeDesc& tree, const GroupDesc&) {
    if (tree.leaf_count == 0 || tree.leaf_count > kMaxTableLeaves)
      return "it has no leaves, or more than 256";
    if (tree.depth >= kMaxTableLeaves) return "it is deeper than a tree of 256 leaves can be";
    if (tree.depth == 0 && tree.leaf_count != 1) return "it has leaves, but no levels";
    return table_header_lines(tree.depth) <= tree.node_count ? nullptr : "its levels leave it";
  }

  static constexpr std::uint32_t levels(const TreeDesc& tree) { return tree.depth; }

  /// Returns the number of columns and slots of tables that a walk of a row looks into.
  static std::uint64_t lookups(const Tree& tree, const TreeDesc& desc) {
    std::uint64_t count = 0;
    for (std::uint32_t i = 0; i < desc.depth; ++i)
      if (tree.level(i).has_tables()) count += std::uint64_t{tree.level(i).columns} + tree.level(i).slots;
    return count;
  }

  /// The facts that the levels above a level establish.
  struct LevelsAbove {
    std::uint32_t open;  ///< Leaves that no level above has retired.
    /// Number of thresholds of each listed column; any byte is an index.
    std::uint8_t codes[kMaxTableLeaves] = {};
  };

  /// Returns what is wrong with a level; null if nothing is. With these rules every lookup stays inside its
  /// table, and each slot and leaf is reached on one way, whatever the codes of a row are.
  static const char* level_rule(const Tree& tree, std::uint32_t i, const TreeDesc& desc,
                                const NodeFacts& facts, LevelsAbove& above) {
    const TableLevel& level = tree.level(i);
    if (level.kind >= LevelKind::Tree) return "there is no such kind of level";
    if (level.slots == 0 || level.slots > kMaxTableSlots) return "its size is wrong";
    if (i == 0 && level.slots != 1) return "its root level has more than one slot";
    if (!level.has_tables() && !tree.oblivious) return "it has no tables, in a tree that has some";
    if (level.kind < LevelKind::Later && above.open != desc.leaf_count)
      return "a level above has retired leaves";
    const bool last = i + 1 == desc.depth;
    if (last && level.retires()) return "the last level retires leaves";
    const std::uint32_t below = last ? above.open : tree.level(i + 1).slots;
    std::uint32_t children = 2u * level.slots;
    const char* const rule = level.has_tables() ? tables_rule(tree, level, desc, facts, above, children)
                                                : test_rule(level.offset(), level.code(), facts);
    if (rule != nullptr) return rule;
    if (level.retires())
      return retiring_rule(LevelTables(tree.lines, level), level.slots, below, children, above);
    return children == below && below <= above.open
               ? nullptr
               : "the level below has not as many slots as it has children";
  }

 protected:
  static constexpr const char* kNotNext = "a child does not follow those of the slot before";

 private:
  static constexpr const char* kNoColumn = "a column does not exist";
  static bool is_column(std::uint32_t offset, const NodeFacts& facts) {
    return (offset % kCodeRows == 0) & (offset / kCodeRows < facts.num_columns);
  }

  static const char* test_rule(std::uint32_t offset, std::uint8_t code, const NodeFacts& facts) {
    if (!is_column(offset, facts)) return kNoColumn;
    return code >= facts.column_codes[offset / kCodeRows] ? "a code is above its column's ranks" : nullptr;
  }

  static constexpr const char* kSlotRules[] = {"a slot's column is not in its list",
                                               "a code is above its column's ranks",
                                               "a leaf in a level of tests", kNotNext};

  /// Returns the rules that a slot breaks, as bits, and adds its children to `children`. Kind is Tests (which
  /// stands for Tree, too), Mixed or Retiring; the children of Retiring and Tree are checked elsewhere.
  template <LevelKind Kind>
  FVM_INLINE static std::uint32_t broken_rules(const LevelTables& tables, std::uint32_t slot,
                                               std::uint32_t columns, const std::uint8_t* codes,
                                               std::uint32_t& children) {
    const std::uint32_t several = columns > 1 ? 0xff : 0;  // a level of one column has no table of columns
    const std::uint32_t column = tables.column[slot] & several, code = tables.code[slot];
    const std::uint32_t leaf = all_bits(code == kNeverRight), before = children;
    children += 2 + leaf;
    std::uint32_t broken =
        rule_bit(0, all_bits(column >= columns)) | rule_bit(1, ~leaf & all_bits(code >= codes[column]));
    if constexpr (Kind == LevelKind::Tests) broken |= rule_bit(2, leaf);
    if constexpr (Kind == LevelKind::Mixed) broken |= rule_bit(3, all_bits(tables.child[slot] != before));
    return broken;
  }

  /// Names the first broken rule of a level that breaks one.
  template <LevelKind Kind>
  [[gnu::cold]] static const char* first_broken_rule(const LevelTables& tables, std::uint32_t columns,
                                                     const std::uint8_t* codes) {
    std::uint32_t count = 0;
    for (std::uint32_t slot = 0;; ++slot)
      if (const auto broken = broken_rules<Kind>(tables, slot, columns, codes, count); broken != 0)
        return kSlotRules[std::countr_zero(broken)];
  }

  template <LevelKind Kind>
  static const char* slots_rule(const LevelTables& tables, const TableLevel& level, const std::uint8_t* codes,
                                std::uint32_t& children) {
    const std::uint32_t slots = level.slots, columns = level.columns;
    std::uint32_t broken = 0, count = 0;
    for (std::uint32_t slot = 0; slot < slots; ++slot)
      broken |= broken_rules<Kind>(tables, slot, columns, codes, count);
    children = count;
    return broken == 0 ? nullptr : first_broken_rule<Kind>(tables, columns, codes);
  }

  static const char* slots_rule(const LevelTables& tables, const TableLevel& level, const std::uint8_t* codes,
                                std::uint32_t& children) {
    if (level.all_tests() || level.is_tree())
      return slots_rule<LevelKind::Tests>(tables, level, codes, children);
    return level.retires() ? slots_rule<LevelKind::Retiring>(tables, level, codes, children)
                           : slots_rule<LevelKind::Mixed>(tables, level, codes, children);
  }

 protected:
  /// Returns what is wrong with a level's tables; null if nothing is. Sets `children` to the number of its
  /// slots' children.
  static const char* tables_rule(const Tree& tree, const TableLevel& level, const TreeDesc& desc,
                                 const NodeFacts& facts, LevelsAbove& above, std::uint32_t& children) {
    if (level.columns == 0 || level.columns > kMaxTableSlots) return "its size is wrong";
    // Walkers keep the codes of a row in as many bytes as the encoder has columns.
    if (level.columns > facts.num_columns) return "it lists more columns than the encoder has";
    const std::uint64_t lines =
        (level.list_bytes() + std::uint64_t{level.tables()} * level.table_bytes()) / sizeof(TableLine);
    if (level.line < table_header_lines(level.is_tree() ? 1 : desc.depth) ||
        level.line + lines > desc.node_count)
      return "its tables leave the tree";
    const LevelTables tables(tree.lines, level);
    const auto listed = static_cast<std::uint32_t>(level.list_bytes() / sizeof(std::uint32_t));
    std::uint32_t wrong = 0;
    for (std::uint32_t c = 0; c < listed; ++c) wrong |= all_bits(!is_column(tables.list[c], facts));
    if (wrong != 0) return kNoColumn;
    const std::uint32_t columns = level.columns;
    for (std::uint32_t c = 0; c < columns; ++c)
      above.codes[c] = facts.column_codes[tables.list[c] / kCodeRows];
    return slots_rule(tables, level, above.codes, children);
  }

 private:
  /// Returns the rule that a level which retires leaves breaks; null if it breaks none. Children are
  /// numbered in the order in which they come, tests and leaves apart from each other, and the leaves end
  /// before the first leaf that a level above has retired.
  static const char* retiring_rule(const LevelTables& tables, std::uint32_t slots, std::uint32_t below,
                                   std::uint32_t children, LevelsAbove& above) {
    if (children < below || children - below > above.open)
      return "the level below has other slots than its tests";
    const std::uint32_t first_leaf = above.open - (children - below);
    std::uint32_t next_test = 0, next_leaf = first_leaf;
    const auto follows = [&](std::uint32_t child) {
      return child == (child < below ? next_test++ : next_leaf++);
    };
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      const bool leaf = tables.code[slot] == kNeverRight;
      const std::uint32_t left = tables.child[slot], right = (left + tables.by[slot]) & 255;
      if (leaf && left < below) return "a leaf stays that its level retires";
      if (!follows(left) || !(leaf || follows(right))) return kNotNext;
    }
    if (next_test != below) return "the level below has not as many slots as it has children";
    above.open = first_leaf;
    return nullptr;
  }
};

}  // namespace forestvm
