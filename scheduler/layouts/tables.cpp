// Builds the tables layout, and tree tables.
#include <forestvm/core/layout/tree_tables.hpp>
#include <forestvm/internal/formatted.hpp>

#include <span>

#include "scheduler/layouts/builder.hpp"
#include "scheduler/layouts/table_levels.hpp"

namespace forestvm::scheduler {
namespace {

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

/// Returns the size of a group. Refuses trees of more than `most` leaves.
Result<LayoutSize> tables_size(const TiledForest& forest, const TreeGroup& group, unsigned most,
                               LevelsOf& of) {
  for (std::uint32_t t = group.tree_begin; t < group.tree_end; ++t)
    if (const std::uint32_t leaves = forest.tree(group.tiling, t).leaves; leaves > most)
      return refused(
          formatted("its tables have room for trees of {} leaves, tree {} has {}", most, t, leaves));
  LayoutSize size;
  Levels levels;
  for_trees(forest, group, [&](const GroupTree& at) {
    of(at.tiled, levels);
    for (const Level& level : levels.levels) {
      size.slots += level.slot_count;
      size.bytes += level_bytes(level);
    }
    size.slots += at.tiled.leaves;
    size.bytes += at.tiled.leaves * sizeof(float);
  });
  return size;
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
    if (records.empty()) append_tables(ranks, at, levels, records, tables);
    // Every tree has a line, even a single leaf.
    if (append_lines(records, tables, built.nodes) == 0) built.nodes.push_back({});
    for (const TileChild leaf : levels.leaves) built.add_leaf(at, leaf);
  });
  built.nodes.resize(built.nodes.size() + kTableSlack);
  return built.finish();
}

}  // namespace

Result<LayoutSize> size_Tables(const TiledForest& forest, const TreeGroup& group) {
  return tables_size(forest, group, kMaxTableLeaves, levels_of);
}
Result<BuiltGroup> build_Tables(const TiledForest& forest, const TreeGroup& group, const RankTable& ranks) {
  return build_tables(forest, group, ranks, levels_of);
}

Result<LayoutSize> size_TreeTables(const TiledForest& forest, const TreeGroup& group) {
  return tables_size(forest, group, kMaxTreeSlots + 1, tree_level_of);
}
Result<BuiltGroup> build_TreeTables(const TiledForest& forest, const TreeGroup& group,
                                    const RankTable& ranks) {
  return build_tables(forest, group, ranks, tree_level_of);
}

}  // namespace forestvm::scheduler
