// Rows -> rank codes. In: the rows of a range and what the program says of features and columns. Out: the
// codes of those rows and no others. One template; a CPU target brings the search.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/interpret.hpp>

namespace forestvm::host {

/// A feature's thresholds as searches want them: 2^bits - 1 of them, NaN after the last, which no value
/// reaches; and those that the first seven steps of a binary search compare with, for searches that keep them
/// in registers.
struct FeatureSearch {
  static constexpr std::size_t kFirst = 32, kSixth = 32, kSeventh = 64;
  static constexpr std::size_t kSplitters = kFirst + kSixth + kSeventh;

  const float* thresholds;
  /// kFirst: of the first five steps, ascending, and a NaN; the thresholds themselves if bits <= 5. Then, by
  /// the number of those that a value reaches, what the sixth step compares with; likewise the seventh.
  const float* splitters;
  unsigned bits;
  std::uint32_t feature;
  std::span<const ColumnDesc> columns;
  std::uint32_t first_column;
};

struct EncodeTask {
  std::span<const FeatureSearch> features;
  std::size_t columns;
  Range row_range;
  const float* rows;
  std::size_t row_stride;
  std::uint8_t* codes;
};

/// Writes kSplitters of a feature with 2^bits - 1 thresholds.
inline void set_splitters(const float* thresholds, unsigned bits, float* splitters) {
  const auto write = [&](float* to, std::size_t count, std::size_t first, unsigned spacing) {
    for (std::size_t i = 0; i < count; ++i) to[i] = thresholds[first + (i << spacing)];
  };
  const unsigned spacing = bits <= 5 ? 0 : bits - 5;
  write(splitters, FeatureSearch::kFirst - 1, (std::size_t{1} << spacing) - 1, spacing);
  splitters += FeatureSearch::kFirst;
  if (bits > 5) write(splitters, FeatureSearch::kSixth, (std::size_t{1} << (bits - 6)) - 1, bits - 5);
  splitters += FeatureSearch::kSixth;
  if (bits > 6) write(splitters, FeatureSearch::kSeventh, (std::size_t{1} << (bits - 7)) - 1, bits - 6);
}

using EncodeFunction = void (*)(const EncodeTask&);

/// What every CPU runs: one value at a time, without branches.
struct ScalarSearch {
  FVM_INLINE static std::uint32_t rank(const FeatureSearch& search, float x) {
    std::uint32_t rank = 0;
    for (std::uint32_t step = (std::uint32_t{1} << search.bits) / 2; step != 0; step /= 2)
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
      const std::uint32_t found = rank(search, x);
      for (std::size_t c = 0; c < search.columns.size(); ++c)
        to[c * kCodeRows + r] = column_code(search.columns[c], found, x != x);
    }
  }
};

template <class Target>
void encode_rows(const EncodeTask& task) {
  const Range& range = task.row_range;
  for (std::uint32_t row = range.begin; row < range.end;) {
    const std::uint32_t in_block = std::min(kCodeRows - row % kCodeRows, range.end - row);
    std::uint8_t* const codes = task.codes + code_offset(row, task.columns);
    const float* const rows = task.rows + row * task.row_stride;
    for (const FeatureSearch& search : task.features)
      Target::Search::encode(search, rows, task.row_stride, in_block, codes);
    row += in_block;
  }
}

}  // namespace forestvm::host
