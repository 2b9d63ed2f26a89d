// Builds the tables layout, and tree tables.
#include <forestvm/core/layout/tree_tables.hpp>
#include <forestvm/internal/formatted.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

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
  std::vector<TileChild> slots;
  LevelKind kind;
  std::uint32_t first_leaf = 0;  ///< the number of its first leaf, if it retires leaves
};

/// A tree level by level, and its leaves in the order of their numbers.
struct Levels {
  std::vector<Level> levels;
  std::vector<TileChild> leaves;
};

Levels levels_of(const TiledTree& tree) {
  Levels found;
  std::vector<TileChild> slots{tree.root}, retired;  // retired: leaves that were retired, the latest first
  for (std::uint32_t depth = 0; depth < tree.depth; ++depth) {
    std::vector<TileChild> tests, all;
    for (const TileChild slot : slots) {
      const std::uint32_t first = slot.is_leaf() ? 0 : tree.tiles[slot.tile()].first_child;
      const std::array<TileChild, 2> children{slot.is_leaf() ? slot : tree.children[first],
                                              slot.is_leaf() ? slot : tree.children[first + 1]};
      for (std::size_t i = 0; i < (slot.is_leaf() ? 1 : 2); ++i) {
        all.push_back(children[i]);
        if (!children[i].is_leaf()) tests.push_back(children[i]);
      }
    }
    Level level{std::move(slots), LevelKind::Later};
    if (depth + 1 < tree.depth && should_retire(tests.size(), all.size(), !retired.empty())) {
      std::erase_if(all, [](TileChild child) { return !child.is_leaf(); });
      retired.insert(retired.begin(), all.begin(), all.end());
      level.kind = LevelKind::Retiring;
      level.first_leaf = tree.leaves - static_cast<std::uint32_t>(retired.size());
      slots = std::move(tests);
    } else {
      if (retired.empty())
        level.kind = all.size() == 2 * level.slots.size() ? LevelKind::Tests : LevelKind::Mixed;
      slots = std::move(all);
    }
    found.levels.push_back(std::move(level));
  }
  found.leaves = std::move(slots);
  found.leaves.insert(found.leaves.end(), retired.begin(), retired.end());
  return found;
}

/// Returns a tree with all tests in one level, and no level if it is a single leaf.
Levels tree_level_of(const TiledTree& tree) {
  Levels found;
  if (tree.root.is_leaf()) {
    found.leaves.push_back(tree.root);
    return found;
  }
  Level level{{tree.root}, LevelKind::Tree};
  for (std::size_t slot = 0; slot < level.slots.size(); ++slot) {
    const std::uint32_t first = tree.tiles[level.slots[slot].tile()].first_child;
    for (const TileChild child : {tree.children[first], tree.children[first + 1]})
      (child.is_leaf() ? found.leaves : level.slots).push_back(child);
  }
  level.first_leaf = static_cast<std::uint32_t>(level.slots.size());
  found.levels.push_back(std::move(level));
  return found;
}

/// The record of a level, and its tables as bytes in whole lines.
struct LevelBytes {
  TableLevel record{};
  std::vector<std::uint8_t> bytes;
};

void append_table(LevelBytes& level, std::vector<std::uint8_t> table) {
  table.resize(level.record.table_bytes());
  level.bytes.insert(level.bytes.end(), table.begin(), table.end());
}

/// Appends the tables of children for a level that retires leaves, or that is a whole tree.
void append_retiring(LevelBytes& to, const TiledTree& tiled, const Level& level) {
  std::vector<std::uint8_t> child, by;
  std::uint32_t next_test = level.kind == LevelKind::Tree ? 1 : 0, next_leaf = level.first_leaf;
  const auto number = [&](TileChild at) { return at.is_leaf() ? next_leaf++ : next_test++; };
  for (const TileChild slot : level.slots) {
    const std::uint32_t first = slot.is_leaf() ? 0 : tiled.tiles[slot.tile()].first_child;
    const std::uint32_t left = number(slot.is_leaf() ? slot : tiled.children[first]);
    const std::uint32_t right = slot.is_leaf() ? left : number(tiled.children[first + 1]);
    child.push_back(static_cast<std::uint8_t>(left));
    by.push_back(static_cast<std::uint8_t>(right - left));
  }
  append_table(to, std::move(child));
  append_table(to, std::move(by));
}

LevelBytes level_bytes(const RankTable& ranks, const GroupTree& tree, const Level& from) {
  std::vector<std::uint32_t> list;
  std::vector<std::uint8_t> column, code, child;
  unsigned children = 0;
  for (const TileChild slot : from.slots) {
    child.push_back(static_cast<std::uint8_t>(children));
    children += slot.is_leaf() ? 1u : 2u;
    if (slot.is_leaf()) {
      column.push_back(0);
      code.push_back(kNeverRight);
      continue;
    }
    const CodedTest test = ranks.find(tree.test(slot));
    const std::uint32_t offset = test.column * kCodeRows;
    const auto at = std::find(list.begin(), list.end(), offset);
    column.push_back(static_cast<std::uint8_t>(at - list.begin()));
    code.push_back(test.code);
    if (at == list.end()) list.push_back(offset);
  }
  LevelBytes level;
  level.record.slots = static_cast<std::uint16_t>(from.slots.size());
  level.record.kind = from.kind;
  level.record.columns = static_cast<std::uint8_t>(list.size());
  list.resize(level.record.list_bytes() / sizeof(std::uint32_t), list.front());
  level.bytes.resize(level.record.list_bytes());
  std::memcpy(level.bytes.data(), list.data(), level.bytes.size());
  if (level.record.columns > 1) append_table(level, std::move(column));
  append_table(level, std::move(code));
  if (level.record.retires())
    append_retiring(level, tree.tiled, from);
  else if (from.kind != LevelKind::Tests)
    append_table(level, std::move(child));
  return level;
}

/// Returns the records of an oblivious tree; none if a level has a leaf or more than one test.
std::vector<TableLevel> oblivious_records(const RankTable& ranks, const GroupTree& tree,
                                          const Levels& levels) {
  std::vector<TableLevel> records;
  for (const Level& level : levels.levels) {
    if (level.kind != LevelKind::Tests) return {};
    std::optional<CodedTest> test;
    for (const TileChild slot : level.slots) {
      const CodedTest mine = ranks.find(tree.test(slot));
      if (test && (test->column != mine.column || test->code != mine.code)) return {};
      test = mine;
    }
    records.push_back({static_cast<std::uint16_t>(level.slots.size()), test->code, LevelKind::OneTest,
                       test->column * kCodeRows});
  }
  return records;
}

std::vector<TableLine> tree_lines(const RankTable& ranks, const GroupTree& tree, const Levels& levels) {
  std::vector<TableLevel> records = oblivious_records(ranks, tree, levels);
  std::vector<std::uint8_t> tables;
  const auto count = static_cast<std::uint32_t>(levels.levels.size());
  const std::uint32_t header = table_header_lines(count);
  for (auto i = static_cast<std::uint32_t>(records.size()); i < count; ++i) {
    LevelBytes level = level_bytes(ranks, tree, levels.levels[i]);
    level.record.line = header + static_cast<std::uint32_t>(tables.size() / sizeof(TableLine));
    records.push_back(level.record);
    tables.insert(tables.end(), level.bytes.begin(), level.bytes.end());
  }
  std::vector<TableLine> lines(std::max<std::size_t>(1, header + tables.size() / sizeof(TableLine)));
  if (records.empty()) return lines;
  std::memcpy(lines.data(), records.data(), records.size() * sizeof(TableLevel));
  if (!tables.empty()) std::memcpy(lines.data() + header, tables.data(), tables.size());
  return lines;
}

using LevelsOf = Levels(const TiledTree& tree);

LayoutSize tables_size(const TiledForest& forest, const TreeGroup& group, LevelsOf& of) {
  LayoutSize size;
  for_trees(forest, group, [&](const GroupTree& at) {
    for (const Level& level : of(at.tiled).levels) {
      size.slots += level.slots.size();
      size.bytes += 3 * level.slots.size() + sizeof(TableLevel) + 16;
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
  built.add_trees(group, [&](const GroupTree& at, std::uint32_t) {
    const Levels levels = of(at.tiled);
    const std::vector<TableLine> lines = tree_lines(ranks, at, levels);
    built.nodes.insert(built.nodes.end(), lines.begin(), lines.end());
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
