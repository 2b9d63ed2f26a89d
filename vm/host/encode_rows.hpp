// Encodes rows as rank codes. In: the rows of a range and the program's features and columns. Out: the codes
// of those rows and no others. It is one template; each CPU target has a search for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/ranges.hpp>

#include "vm/host/rounded_values.hpp"

namespace forestvm::host {

/// A feature's thresholds in the three orders that searches use: 2^bits - 1 in ascending order, the last ones
/// NaN, which no value reaches; in the order of a binary search, for searches that keep them in registers; and
/// with separators above them, for searches of one value.
struct FeatureSearch {
  static constexpr unsigned kSplitSteps = 8;
  /// A node of the search of one value: a cache line of thresholds, which settles kNodeBits bits of the rank.
  static constexpr unsigned kNodeBits = 4, kNode = 1u << kNodeBits;

  const float* thresholds;
  /// The top of the binary search tree, with the thresholds of its first kSplitSteps steps, or of all steps if
  /// there are fewer. The first step compares with splitters[1]. After a step at i the next one is at 2 i for a
  /// value below splitters[i], otherwise at 2 i + 1. splitters[0] and unused entries up to 31 are NaN. The array is
  /// aligned to a cache line.
  const float* splitters;
  /// The levels of a search tree whose nodes have kNode children, one behind the other; the last one is `thresholds`.
  /// The root is a whole node, and settles top_bits bits, 1 to kNodeBits. Unused separators are NaN.
  const float* separators;
  std::uint32_t feature;
  std::uint32_t first_column;
  std::span<const ColumnDesc> columns;
  unsigned bits;
  std::uint8_t top_bits;
  /// True if the feature has at most two columns, and the rank of a value that is not missing is its code in each.
  bool ranks_are_codes;
};

/// Returns a value's rank. reached(node) returns how many of a node's thresholds it has reached.
template <class Reached>
FVM_INLINE std::uint32_t rank_of_value(const FeatureSearch& search, const Reached& reached) {
  constexpr unsigned kNode = FeatureSearch::kNode, kNodeBits = FeatureSearch::kNodeBits;
  const float* level = search.separators;
  std::uint32_t rank = reached(level);
  level += kNode;
  for (unsigned bits = search.top_bits; bits < search.bits; bits += kNodeBits) {
    const std::size_t node = std::size_t{rank} * kNode;
    rank = rank * kNode + reached(level + node);
    level += std::size_t{kNode} << bits;
  }
  return rank;
}

/// The most values of a row that are transposed together: as many as a cache line holds.
inline constexpr std::uint32_t kTileValues = 16;

/// Features that are encoded one after the other. Their values are among the value_count values of a row from
/// first_value on, none of which is beyond the row's end; value_count is a multiple of four. If value_count is 0,
/// the values may be anywhere in the row.
struct FeatureTile {
  std::span<const FeatureSearch> features;
  std::uint32_t first_value, value_count;
};

struct EncodeTask {
  std::span<const FeatureTile> tiles;
  std::size_t columns;
  Range row_range;
  const float* rows;
  std::size_t row_stride;
  std::uint8_t* codes;
};

using EncodeFunction = void (*)(const EncodeTask&);

/// Writes the codes of one value in all columns of its feature, from `to` on, kCodeRows apart.
FVM_INLINE void write_code(const FeatureSearch& search, std::uint32_t rank, bool missing, std::uint8_t* to) {
  if (search.ranks_are_codes && !missing) [[likely]] {
    *to = static_cast<std::uint8_t>(rank);
    if (search.columns.size() > 1) to[kCodeRows] = static_cast<std::uint8_t>(rank);
    return;
  }
  // A loop that the compiler vectorises costs more than the search.
  *to = column_code(search.columns[0], rank, missing);
  for (std::size_t c = 1; c < search.columns.size(); ++c)
    to[c * kCodeRows] = column_code(search.columns[c], rank, missing);
}

/// Writes the codes of up to 64 rows of a block in all columns of the tile's features. `codes` points to the first
/// row's code in column 0. A target whose search is faster than fetching values also has transpose(rows, stride,
/// count, values, to), which writes `values` values of each row, kCodeRows of the first value, then of the second;
/// encode_transposed, which reads the values of a feature from there; and kFewRows, the number of rows up to which
/// transposing is not worth it, which encode_few_rows encodes. Values that are read in place are slower: in rows of
/// 4 KiB they push each other out of the cache before their neighbours are read, and even in short rows gathering them
/// takes longer than transposing them.
template <class Search>
FVM_INLINE void encode_tile(const FeatureTile& tile, const float* rows, std::size_t stride, unsigned count,
                            std::uint8_t* codes) {
  if constexpr (requires { Search::kFewRows; }) {
    if (tile.value_count != 0) {
      alignas(64) float values[kTileValues * kCodeRows];
      Search::transpose(rows + tile.first_value, stride, count, tile.value_count, values);
      for (const FeatureSearch& search : tile.features)
        Search::encode_transposed(search, values + std::size_t{search.feature - tile.first_value} * kCodeRows,
                                  count, codes);
      return;
    }
  }
  for (const FeatureSearch& search : tile.features) Search::encode(search, rows, stride, count, codes);
}

/// The stride, in values, from which on rows are so far apart that the processor does not foresee which lines are read
/// next. In rows that lie in the caches prefetching costs 5%.
inline constexpr std::size_t kWideRow = 64;

/// The number of tiles by which values are prefetched before they are encoded. With 4, 8 and 24 tiles, values that
/// come from memory took as long or longer.
inline constexpr std::size_t kTilesAhead = 12;

/// Prefetches the values of the tile that is encoded kTilesAhead tiles after the tile `at` of the block whose first row
/// is `row`; it may belong to a later block. The lines go to the second-level cache: the first-level cache has no room
/// for them where rows are 4 KiB apart.
FVM_INLINE void prefetch_tile(const EncodeTask& task, std::uint32_t row, std::size_t at) {
  at += kTilesAhead;
  for (; at >= task.tiles.size(); at -= task.tiles.size()) row += kCodeRows - row % kCodeRows;
  if (row >= task.row_range.end) return;
  const float* const values = task.rows + row * task.row_stride + task.tiles[at].first_value;
  const unsigned count = std::min(kCodeRows - row % kCodeRows, task.row_range.end - row);
  constexpr int to_read = 0, second_level = 2;
  for (unsigned r = 0; r < count; ++r)
    __builtin_prefetch(values + r * task.row_stride, to_read, second_level);
}

/// Writes the codes of up to Search::kFewRows rows of a block, one by one. It is a function of its own, because beside
/// the code for many rows the compiler keeps the constants of that code in the registers.
template <class Search>
[[gnu::noinline]] static void encode_few_rows(const EncodeTask& task, const float* rows, unsigned count,
                                              std::uint8_t* codes) {
  for (unsigned r = 0; r < count; ++r, rows += task.row_stride)
    for (const FeatureTile& tile : task.tiles)
      for (const FeatureSearch& search : tile.features)
        Search::encode_one(search, rows[search.feature], r, AsTheyAre(), codes);
}

template <class Target>
void encode_rows(const EncodeTask& task) {
  const Range& range = task.row_range;
  for (std::uint32_t row = range.begin; row < range.end;) {
    const std::uint32_t in_block = std::min(kCodeRows - row % kCodeRows, range.end - row);
    std::uint8_t* const codes = task.codes + code_offset(row, task.columns);
    const float* const rows = task.rows + row * task.row_stride;
    const std::uint32_t first = row;
    row += in_block;
    if constexpr (requires { Target::Search::kFewRows; })
      if (in_block <= Target::Search::kFewRows) {
        encode_few_rows<typename Target::Search>(task, rows, in_block, codes);
        continue;
      }
    for (std::size_t i = 0; i < task.tiles.size(); ++i) {
      if (task.row_stride >= kWideRow) prefetch_tile(task, first, i);
      encode_tile<typename Target::Search>(task.tiles[i], rows, task.row_stride, in_block, codes);
    }
  }
}

}  // namespace forestvm::host
