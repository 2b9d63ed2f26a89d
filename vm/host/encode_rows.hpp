// Rows -> rank codes. In: the rows of a range and what the program says of features and columns. Out: the
// codes of those rows and no others. One template; a CPU target brings the search.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/ranges.hpp>

namespace forestvm::host {

/// A feature's thresholds as searches want them: 2^bits - 1 of them, NaN after the last, which no value
/// reaches; and in another order, for searches that keep them in registers.
struct FeatureSearch {
  static constexpr unsigned kSplitSteps = 8;

  const float* thresholds;
  /// What the first kSplitSteps of a binary search compare with, as far as it has so many: at 1 the first
  /// step's; at 2 i and 2 i + 1 what comes after a value below the one at i, and after any other. NaN at 0
  /// and up to 32; a cache line's alignment.
  const float* splitters;
  unsigned bits;
  std::uint32_t feature;
  std::span<const ColumnDesc> columns;
  std::uint32_t first_column;
};

/// Most values of a row that are taken together: a cache line of them.
inline constexpr std::uint32_t kTileValues = 16;

/// Features that are encoded one after the other. Their values lie among the value_count from first_value on,
/// a multiple of four, none of which is beyond a row's end; if that is 0, anywhere.
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

/// The codes of one value, in all columns of its feature: from `to` on, kCodeRows apart.
FVM_INLINE void write_code(const FeatureSearch& search, std::uint32_t rank, bool missing, std::uint8_t* to) {
  // Nearly always there is one, and a loop that the compiler makes vectors of costs more than the search.
  *to = column_code(search.columns[0], rank, missing);
  for (std::size_t c = 1; c < search.columns.size(); ++c)
    to[c * kCodeRows] = column_code(search.columns[c], rank, missing);
}

/// What every CPU runs: one value at a time, without branches.
struct ScalarSearch {
  /// The last `bits` steps of a search, after those that found `rank`.
  FVM_INLINE static std::uint32_t rank(const FeatureSearch& search, float x, std::uint32_t rank,
                                       unsigned bits) {
    for (std::uint32_t step = (std::uint32_t{1} << bits) / 2; step != 0; step /= 2)
      rank += x >= search.thresholds[rank + step - 1] ? step : 0;
    return rank;
  }

  /// The codes of up to 64 rows of a block, in all columns of a feature. `codes`: the first row's in column
  /// 0.
  FVM_INLINE static void encode(const FeatureSearch& search, const float* rows, std::size_t stride,
                                unsigned count, std::uint8_t* codes) {
    std::uint8_t* const to = codes + std::size_t{search.first_column} * kCodeRows;
    for (unsigned r = 0; r < count; ++r) {
      const float x = rows[r * stride + search.feature];
      write_code(search, rank(search, x, 0, search.bits), x != x, to + r);
    }
  }
};

/// The codes of up to 64 rows of a block: `codes` as above. A target whose search is so fast that fetching
/// the values takes longer brings more: transpose(rows, stride, count, values, to) writes such a number of
/// each row's values, kCodeRows of the first, then of the second; encode_transposed reads those of a feature;
/// and kFewRows are not worth it. Taken where they lie, a row apart, the values of rows of 4 KiB push each
/// other out of the cache before their neighbours are asked for; and even those of short rows are gathered
/// more slowly than they are transposed.
template <class Search>
FVM_INLINE void encode_tile(const FeatureTile& tile, const float* rows, std::size_t stride, unsigned count,
                            std::uint8_t* codes) {
  if constexpr (requires { Search::kFewRows; }) {
    if (tile.value_count != 0 && count > Search::kFewRows) {
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

/// Values from which on rows are so far apart that the processor does not foresee which lines are read next.
inline constexpr std::size_t kWideRow = 256;

/// Asks for the line of each row's values from `rows` on.
FVM_INLINE void prefetch_values(const float* rows, std::size_t stride, unsigned count) {
  for (unsigned r = 0; r < count; ++r) __builtin_prefetch(rows + r * stride);
}

template <class Target>
void encode_rows(const EncodeTask& task) {
  const Range& range = task.row_range;
  for (std::uint32_t row = range.begin; row < range.end;) {
    const std::uint32_t in_block = std::min(kCodeRows - row % kCodeRows, range.end - row);
    std::uint8_t* const codes = task.codes + code_offset(row, task.columns);
    const float* const rows = task.rows + row * task.row_stride;
    for (std::size_t i = 0; i < task.tiles.size(); ++i) {
      if (task.row_stride >= kWideRow && i + 1 < task.tiles.size())
        prefetch_values(rows + task.tiles[i + 1].first_value, task.row_stride, in_block);
      encode_tile<typename Target::Search>(task.tiles[i], rows, task.row_stride, in_block, codes);
    }
    row += in_block;
  }
}

}  // namespace forestvm::host
