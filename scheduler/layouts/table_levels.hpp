// The levels of trees whose tests are tables, and the tables of a level: what the builders of tables, tree tables and
// top tables share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/core/layout/tables.hpp>

#include "scheduler/layouts/builder.hpp"

namespace forestvm::scheduler {

/// A level of a tree.
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

/// Finds the levels of a tree of at most kMaxTableLeaves leaves.
void levels_of(const TiledTree& tree, Levels& found);

/// Returns the bytes that a level takes, without the padding of its tables.
inline std::uint64_t level_bytes(const Level& level) {
  return std::uint64_t{3} * level.slot_count + sizeof(TableLevel) + 16;
}

/// Appends the tables of a tree's levels to `tables`, and a record for each to `records`, which must be empty. The
/// records count lines from the tree's first, where the records themselves will lie.
void append_tables(const RankTable& ranks, const GroupTree& tree, const Levels& levels,
                   std::vector<TableLevel>& records, std::vector<std::uint8_t>& tables);

/// Appends a tree's records and tables to the lines of a group; returns how many lines that are.
std::uint32_t append_lines(std::span<const TableLevel> records, std::span<const std::uint8_t> tables,
                           std::vector<TableLine>& lines);

}  // namespace forestvm::scheduler
