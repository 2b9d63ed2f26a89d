// Builds the tables layout, and tree tables.
#include <forestvm/core/layout/tree_tables.hpp>
#include <forestvm/internal/formatted.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <span>

#include <boost/container/static_vector.hpp>

#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {
namespace {

/// The number of slots that every CPU target looks up fast.
constexpr std::size_t kMaxSlotsWithLeaves = 64;

/// Returns true if a level retires its leaves instead of repeating them in the level below. It must if the level
/// below would exceed kMaxTableSlots; otherwise only speed matters. The first level that retires leaves makes all
/// levels below it slower, because their walks may have ended.
bool should_retire(std::size_t tests, std::size_t children, bool retired_above) {
  if (tests == children) return false;
  const auto table_bytes = [](std::size_t slots) { return std::bit_ceil(std::max<std::size_t>(slots, 16)); };
  return children > kMaxSlotsWithLeaves || (retired_above && table_bytes(tests) < table_bytes(children));
}

struct Level {
  LevelKind kind;
  std::uint32_t first_slot = 0;
  std::uint32_t slot_count = 0;
  std::uint32_t first_leaf = 0;  ///< the number of its first leaf, if it retires leaves
};

/// A tree level by level, and its leaves in the order of their numbers. One object serves tree after tree, so that
/// its memory is allocated once.
struct Levels {
  std::vector<Level> levels;
  std::vector<TileChild> slots;  ///< the slots of all levels
  std::vector<TileChild> leaves;

  std::span<const TileChild> slots_of(const Level& level) const {
    return std::span(slots).subspan(level.first_slot, level.slot_count);
  }
};

/// Finds the levels of a tree.
void levels_of(const TiledTree& tree, Levels& found) {
  std::vector<TileChild>& slots = found.slots;
  std::vector<TileChild>& retired = found.leaves;  // the latest first
  found.levels.clear();
  retired.clear();
  slots.assign(1, tree.root);
  std::uint32_t first = 0;
  for (std::uint32_t depth = 0; depth < tree.depth; ++depth) {
    const auto end = static_cast<std::uint32_t>(slots.size());
    std::size_t tests = 0;
    for (std::uint32_t slot = first; slot < end; ++slot) {
      const TileChild at = slots[slot];
      if (at.is_leaf()) {
        slots.push_back(at);
        continue;
      }
      for (const TileChild child : children_of(tree, at)) {
        slots.push_back(child);
        tests += child.is_leaf() ? 0u : 1u;
      }
    }
    const std::size_t all = slots.size() - end;
    Level level{LevelKind::Later, first, end - first, 0};
    if (depth + 1 < tree.depth && should_retire(tests, all, !retired.empty())) {
      std::size_t test = end, leaf = 0;
      retired.insert(retired.begin(), all - tests, TileChild::none());
      for (std::size_t slot = end; slot < slots.size(); ++slot)
        (slots[slot].is_leaf() ? retired[leaf++] : slots[test++]) = slots[slot];
      slots.resize(test);
      level.kind = LevelKind::Retiring;
      level.first_leaf = tree.leaves - static_cast<std::uint32_t>(retired.size());
    } else if (retired.empty()) {
      level.kind = all == std::size_t{2} * level.slot_count ? LevelKind::Tests : LevelKind::Mixed;
    }
    found.levels.push_back(level);
    first = end;
  }
  retired.insert(retired.begin(), slots.begin() + first, slots.end());
}

/// Finds a tree with all tests in one level, and no level if it is a single leaf.
void tree_level_of(const TiledTree& tree, Levels& found) {
  found.levels.clear();
  found.leaves.clear();
  found.slots.clear();
  (tree.root.is_leaf() ? found.leaves : found.slots).push_back(tree.root);
  for (std::size_t slot = 0; slot < found.slots.size(); ++slot)
    for (const TileChild child : children_of(tree, found.slots[slot]))
      (child.is_leaf() ? found.leaves : found.slots).push_back(child);
  const auto count = static_cast<std::uint32_t>(found.slots.size());
  if (count != 0) found.levels.push_back({LevelKind::Tree, 0, count, count});
}

/// A table of a level, a byte for each slot.
using Table = boost::container::static_vector<std::uint8_t, kMaxTableSlots>;

/// Appends tables of levels to those of a tree.
class TableWriter {
 public:
  TableWriter(const RankTable& ranks, const GroupTree& tree, const Levels& levels,
              std::vector<std::uint8_t>& bytes)
      : ranks_(ranks), tree_(tree), levels_(levels), bytes_(bytes) {}

  /// Appends the tables of a level; returns its record, which does not say where they begin.
  TableLevel append(const Level& from) {
    boost::container::static_vector<std::uint32_t, kMaxTableSlots + 3> list;
    Table column, code, child;
    unsigned children = 0;
    for (const TileChild slot : levels_.slots_of(from)) {
      child.push_back(static_cast<std::uint8_t>(children));
      children += slot.is_leaf() ? 1u : 2u;
      if (slot.is_leaf()) {
        column.push_back(0);
        code.push_back(kNeverRight);
        continue;
      }
      const CodedTest test = ranks_.find(tree_.test(slot));
      const std::uint32_t offset = test.column * kCodeRows;
      const auto at = std::find(list.begin(), list.end(), offset);
      column.push_back(static_cast<std::uint8_t>(at - list.begin()));
      code.push_back(test.code);
      if (at == list.end()) list.push_back(offset);
    }
    TableLevel record{};
    record.slots = static_cast<std::uint16_t>(from.slot_count);
    record.kind = from.kind;
    record.columns = static_cast<std::uint8_t>(list.size());
    list.resize(record.list_bytes() / sizeof(std::uint32_t), list.front());
    append_bytes(list.data(), record.list_bytes(), record.list_bytes());
    if (record.columns > 1) append_table(record, column);
    append_table(record, code);
    if (record.retires())
      append_retiring(record, from);
    else if (!record.all_tests())
      append_table(record, child);
    return record;
  }

 private:
  void append_bytes(const void* from, std::size_t count, std::size_t room) {
    bytes_.resize(bytes_.size() + room);
    std::memcpy(bytes_.data() + bytes_.size() - room, from, count);
  }

  void append_table(const TableLevel& record, const Table& table) {
    append_bytes(table.data(), table.size(), record.table_bytes());
  }

  /// Appends the tables of children for a level that retires leaves, or that is a whole tree.
  void append_retiring(const TableLevel& record, const Level& level) {
    Table child, by;
    std::uint32_t next_test = record.is_tree() ? 1 : 0, next_leaf = level.first_leaf;
    const auto number = [&](TileChild at) { return at.is_leaf() ? next_leaf++ : next_test++; };
    for (const TileChild slot : levels_.slots_of(level)) {
      const std::uint32_t first = slot.is_leaf() ? 0 : tree_.tiled.tiles[slot.tile()].first_child;
      const std::uint32_t left = number(slot.is_leaf() ? slot : tree_.tiled.children[first]);
      const std::uint32_t right = slot.is_leaf() ? left : number(tree_.tiled.children[first + 1]);
      child.push_back(static_cast<std::uint8_t>(left));
      by.push_back(static_cast<std::uint8_t>(right - left));
    }
    append_table(record, child);
    append_table(record, by);
  }

  const RankTable& ranks_;
  const GroupTree& tree_;
  const Levels& levels_;
  std::vector<std::uint8_t>& bytes_;
};

/// Finds the records of an oblivious tree; none if a level has a leaf or more than one test.
void oblivious_records(const RankTable& ranks, const GroupTree& tree, const Levels& levels,
                       std::vector<TableLevel>& records) {
  records.clear();
  for (const Level& level : levels.levels) {
    if (level.kind != LevelKind::Tests) return records.clear();
    const std::span<const TileChild> slots = levels.slots_of(level);
    const CodedTest test = ranks.find(tree.test(slots.front()));
    for (const TileChild slot : slots.subspan(1))
      if (ranks.find(tree.test(slot)) != test) return records.clear();
    records.push_back({static_cast<std::uint16_t>(level.slot_count), test.code, LevelKind::OneTest,
                       test.column * kCodeRows});
  }
}

using LevelsOf = void(const TiledTree& tree, Levels& found);

LayoutSize tables_size(const TiledForest& forest, const TreeGroup& group, LevelsOf& of) {
  LayoutSize size;
  Levels levels;
  for_trees(forest, group, [&](const GroupTree& at) {
    of(at.tiled, levels);
    for (const Level& level : levels.levels) {
      size.slots += level.slot_count;
      size.bytes += std::uint64_t{3} * level.slot_count + sizeof(TableLevel) + 16;
    }
    size.slots += at.tiled.leaves;
    size.bytes += at.tiled.leaves * sizeof(float);
  });
  return size;
}

std::optional<std::string> why_not_tables(const TiledForest& forest, const TreeGroup& group, unsigned most) {
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
    if (const std::uint32_t leaves = forest.tree(group.tiling, t).leaves; leaves > most)
      return formatted("its tables have room for trees of {} leaves, tree {} has {}", most, t, leaves);
  return std::nullopt;
}

BuiltGroup build_tables(const TiledForest& forest, const TreeGroup& group, const RankTable& ranks,
                        LevelsOf& of) {
  GroupBuilder<TableLine> built(forest);
  Levels levels;
  std::vector<TableLevel> records;
  std::vector<std::uint8_t> tables;
  built.add_trees(group, [&](const GroupTree& at, std::uint32_t) {
    of(at.tiled, levels);
    tables.clear();
    oblivious_records(ranks, at, levels, records);
    const std::uint32_t header = table_header_lines(static_cast<std::uint32_t>(levels.levels.size()));
    TableWriter writer(ranks, at, levels, tables);
    for (std::size_t i = records.size(); i < levels.levels.size(); ++i) {
      const auto line = header + static_cast<std::uint32_t>(tables.size() / sizeof(TableLine));
      records.push_back(writer.append(levels.levels[i]));
      records.back().line = line;
    }
    const std::size_t first = built.nodes.size();
    built.nodes.resize(first + std::max<std::size_t>(1, header + tables.size() / sizeof(TableLine)));
    TableLine* const lines = &built.nodes[first];
    if (!records.empty()) std::memcpy(lines, records.data(), records.size() * sizeof(TableLevel));
    if (!tables.empty()) std::memcpy(lines + header, tables.data(), tables.size());
    for (const TileChild leaf : levels.leaves) built.add_leaf(at, leaf);
  });
  built.nodes.resize(built.nodes.size() + kTableSlack);
  return built.finish();
}

}  // namespace

LayoutSize size_Tables(const TiledForest& forest, const TreeGroup& group) {
  return tables_size(forest, group, levels_of);
}
std::optional<std::string> why_not_Tables(const TiledForest& forest, const TreeGroup& group) {
  return why_not_tables(forest, group, kMaxTableLeaves);
}
Result<BuiltGroup> build_Tables(const TiledForest& forest, const TreeGroup& group, const RankTable& ranks) {
  return build_tables(forest, group, ranks, levels_of);
}

LayoutSize size_TreeTables(const TiledForest& forest, const TreeGroup& group) {
  return tables_size(forest, group, tree_level_of);
}
std::optional<std::string> why_not_TreeTables(const TiledForest& forest, const TreeGroup& group) {
  return why_not_tables(forest, group, kMaxTreeSlots + 1);
}
Result<BuiltGroup> build_TreeTables(const TiledForest& forest, const TreeGroup& group,
                                    const RankTable& ranks) {
  return build_tables(forest, group, ranks, tree_level_of);
}

}  // namespace forestvm::scheduler
