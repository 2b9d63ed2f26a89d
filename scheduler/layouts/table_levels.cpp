// See table_levels.hpp.
#include "scheduler/layouts/table_levels.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <boost/container/static_vector.hpp>

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

}  // namespace

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

void append_tables(const RankTable& ranks, const GroupTree& tree, const Levels& levels,
                   std::vector<TableLevel>& records, std::vector<std::uint8_t>& tables) {
  const std::uint32_t header = table_header_lines(static_cast<std::uint32_t>(levels.levels.size()));
  TableWriter writer(ranks, tree, levels, tables);
  for (const Level& level : levels.levels) {
    const auto line = header + static_cast<std::uint32_t>(tables.size() / sizeof(TableLine));
    records.push_back(writer.append(level));
    records.back().line = line;
  }
}

std::uint32_t append_lines(std::span<const TableLevel> records, std::span<const std::uint8_t> tables,
                           std::vector<TableLine>& lines) {
  const std::uint32_t header = table_header_lines(static_cast<std::uint32_t>(records.size()));
  const std::size_t first = lines.size(), count = header + tables.size() / sizeof(TableLine);
  lines.resize(first + count);
  if (!records.empty()) std::memcpy(&lines[first], records.data(), records.size_bytes());
  if (!tables.empty()) std::memcpy(&lines[first + header], tables.data(), tables.size());
  return static_cast<std::uint32_t>(count);
}

}  // namespace forestvm::scheduler
