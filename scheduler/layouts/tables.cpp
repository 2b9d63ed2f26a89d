// Builds the tables layout.
#include <forestvm/core/layout/tables.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {
namespace {

/// A tree level by level; a leaf stays in every level below its own.
using Levels = std::vector<std::vector<TileChild>>;

Levels levels_of(const TiledTree& tree) {
  Levels levels{{tree.root}};
  for (std::uint32_t depth = 0; depth < tree.depth; ++depth) {
    std::vector<TileChild> below;
    for (const TileChild slot : levels.back()) {
      if (slot.is_leaf()) {
        below.push_back(slot);
        continue;
      }
      const Tile& tile = tree.tiles[slot.tile()];
      below.push_back(tree.children[tile.first_child]);
      below.push_back(tree.children[tile.first_child + 1]);
    }
    levels.push_back(std::move(below));
  }
  return levels;
}

/// One level's tables, as bytes in whole lines.
struct LevelBytes {
  TableLevel record{};
  std::vector<std::uint8_t> bytes;
};

void append_table(LevelBytes& level, std::vector<std::uint8_t> table) {
  table.resize(level.record.table_bytes());
  level.bytes.insert(level.bytes.end(), table.begin(), table.end());
}

CodedTest coded_test(const TiledForest& forest, const Tree& tree, const TiledTree& tiled, TileChild slot) {
  return forest.ranks.find(test_of(tree, tiled.nodes[tiled.tiles[slot.tile()].first_node]));
}

LevelBytes level_bytes(const TiledForest& forest, const Tree& tree, const TiledTree& tiled,
                       const std::vector<TileChild>& slots) {
  std::vector<std::uint32_t> list;
  std::vector<std::uint8_t> column, code, child;
  unsigned children = 0;
  for (const TileChild slot : slots) {
    child.push_back(static_cast<std::uint8_t>(children));
    children += slot.is_leaf() ? 1u : 2u;
    if (slot.is_leaf()) {
      column.push_back(0);
      code.push_back(kNeverRight);
      continue;
    }
    const CodedTest test = coded_test(forest, tree, tiled, slot);
    const std::uint32_t offset = test.column * kCodeRows;
    const auto at = std::find(list.begin(), list.end(), offset);
    column.push_back(static_cast<std::uint8_t>(at - list.begin()));
    code.push_back(test.code);
    if (at == list.end()) list.push_back(offset);
  }
  LevelBytes level;
  level.record.slots = static_cast<std::uint16_t>(slots.size());
  level.record.kind = children == 2 * slots.size() ? LevelKind::Tests : LevelKind::Mixed;
  level.record.columns = static_cast<std::uint8_t>(list.size());
  list.resize(level.record.list_bytes() / sizeof(std::uint32_t), list.front());
  level.bytes.resize(level.record.list_bytes());
  std::memcpy(level.bytes.data(), list.data(), level.bytes.size());
  if (level.record.columns > 1) append_table(level, std::move(column));
  append_table(level, std::move(code));
  if (!level.record.all_tests()) append_table(level, std::move(child));
  return level;
}

/// The records of an oblivious tree; none if a level has a leaf or more than one test.
std::vector<TableLevel> oblivious_records(const TiledForest& forest, const Tree& tree, const TiledTree& tiled,
                                          const Levels& levels) {
  std::vector<TableLevel> records;
  for (std::uint32_t depth = 0; depth < tiled.depth; ++depth) {
    const std::vector<TileChild>& slots = levels[depth];
    std::optional<CodedTest> test;
    for (const TileChild slot : slots) {
      if (slot.is_leaf()) return {};
      const CodedTest mine = coded_test(forest, tree, tiled, slot);
      if (test && (test->column != mine.column || test->code != mine.code)) return {};
      test = mine;
    }
    records.push_back(
        {static_cast<std::uint16_t>(slots.size()), test->code, LevelKind::OneTest, test->column * kCodeRows});
  }
  return records;
}

std::vector<TableLine> tree_lines(const TiledForest& forest, const Tree& tree, const TiledTree& tiled,
                                  const Levels& levels) {
  std::vector<TableLevel> records = oblivious_records(forest, tree, tiled, levels);
  std::vector<std::uint8_t> tables;
  const std::uint32_t header = table_header_lines(tiled.depth);
  for (auto depth = static_cast<std::uint32_t>(records.size()); depth < tiled.depth; ++depth) {
    LevelBytes level = level_bytes(forest, tree, tiled, levels[depth]);
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

}  // namespace

LayoutSize size_Tables(const TiledForest& forest, const TreeGroup& group) {
  LayoutSize size;
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t) {
    const TiledTree& tree = forest.tree(group.tiling, t);
    const Levels levels = levels_of(tree);
    for (std::uint32_t depth = 0; depth < tree.depth; ++depth) {
      size.slots += levels[depth].size();
      size.bytes += 3 * levels[depth].size() + sizeof(TableLevel) + 16;
    }
    size.slots += tree.leaves;
    size.bytes += tree.leaves * sizeof(float);
  }
  return size;
}

std::optional<std::string> misfit_Tables(const TiledForest& forest, const TreeGroup& group) {
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
    if (const std::uint32_t leaves = forest.tree(group.tiling, t).leaves; leaves > kMaxTableSlots)
      return "its tables have room for trees of " + std::to_string(kMaxTableSlots) + " leaves, tree " +
             std::to_string(t) + " has " + std::to_string(leaves);
  return std::nullopt;
}

BuiltGroup build_Tables(const TiledForest& forest, const TreeGroup& group) {
  BuiltGroup built;
  std::vector<TableLine> lines;
  std::vector<float> leaves;
  for (std::uint32_t position = group.tree_begin; position < group.tree_end; ++position) {
    const Tree& tree = forest.model_tree(position);
    const TiledTree& tiled = forest.tree(group.tiling, position);
    const Levels levels = levels_of(tiled);
    const std::vector<TableLine> mine = tree_lines(forest, tree, tiled, levels);
    TreeDesc desc = record_of(forest, position, tiled.depth);
    desc.first_node = static_cast<std::uint32_t>(lines.size());
    desc.node_count = static_cast<std::uint32_t>(mine.size());
    desc.first_leaf = static_cast<std::uint32_t>(leaves.size());
    desc.leaf_count = tiled.leaves;
    for (const TileChild leaf : levels.back()) {
      set_number(built, forest, leaves.size(), tree, leaf.leaf());
      leaves.push_back(leaf_output(forest, tree, leaf.leaf()));
    }
    lines.insert(lines.end(), mine.begin(), mine.end());
    built.trees.push_back(desc);
  }
  lines.resize(lines.size() + kTableSlack);
  built.node_count = lines.size();
  built.leaf_count = leaves.size();
  append(built.nodes, lines);
  append(built.nodes, leaves);
  return built;
}

}  // namespace forestvm::scheduler
