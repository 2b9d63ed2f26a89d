// Encodes columns as rank codes, without making rows of them. In: the rows of a range, the program's features and
// columns. Out: the codes of those rows and no others. A column of float32 numbers is read where it lies; others are
// converted a block at a time. It is one template; each CPU target has a search for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <forestvm/internal/column_set.hpp>

#include "vm/host/encode_categories.hpp"
#include "vm/host/encode_rows.hpp"

namespace forestvm::host {

/// Writes what walks compare for up to kCodeRows rows of a feature to `out`. `rules` are the program's ValueRules.
using ReadColumn = void (*)(const void* rules, const Column& column, std::uint32_t feature, std::size_t row,
                            std::size_t count, float* out);

struct ColumnTask {
  std::span<const FeatureSearch> searches;
  std::span<const FeatureCategories> categories;
  const std::uint32_t* words;  ///< The words of `categories`.
  const bool* special;         ///< For each feature, whether its values are not compared as they are.
  std::size_t columns;         ///< Number of columns of codes.
  Range row_range;
  ColumnSet from;
  std::size_t first_row;  ///< Row of `from` that is row 0 of the range.
  ReadColumn read;
  const void* rules;
  std::uint8_t* codes;
};

using EncodeColumnsFunction = void (*)(const ColumnTask&);

/// Writes the codes of up to 64 rows of a block in all columns of a feature. `values` are aligned to a cache line, and
/// 64 of them can be read.
template <class Search>
FVM_INLINE void encode_block(const FeatureSearch& search, const float* values, unsigned count,
                             std::uint8_t* codes) {
  if constexpr (requires { Search::kFewRows; }) {
    Search::encode_transposed(search, values, count, codes);
  } else {
    std::uint8_t* const to = codes + std::size_t{search.first_column} * kCodeRows;
    for (unsigned r = 0; r < count; ++r)
      write_code(search, Search::rank(search, values[r], 0, search.bits), values[r] != values[r], to + r);
  }
}

/// The blocks of a column that are encoded one after the other, so that its thresholds stay in registers and the
/// processor foresees what is read next.
inline constexpr std::uint32_t kBlocksTogether = 8;

/// Calls encode(values, count, codes) for each block of a range of rows, at most kBlocksTogether blocks, with the values
/// of a feature: 64 floats, aligned to a cache line, of which the first `count` belong to rows. `codes` points to the
/// first row's code in column 0.
template <class Encode>
FVM_INLINE void for_blocks(const ColumnTask& task, std::uint32_t feature, const Range& rows,
                           const Encode& encode) {
  constexpr std::uintptr_t line = 64;
  const Column column = task.from.of(feature);
  const bool floats = column.form == ColumnForm::Numbers && column.type == RowType::Float32 &&
                      column.validity == nullptr && !task.special[feature];
  const auto* const values = static_cast<const std::byte*>(column.values);
  alignas(64) float block[kCodeRows];
  for (std::uint32_t row = rows.begin; row < rows.end;) {
    const std::uint32_t count = std::min(kCodeRows - row % kCodeRows, rows.end - row);
    const std::byte* const here = values + (column.offset + task.first_row + row) * sizeof(float);
    const float* from = block;
    if (floats && count == kCodeRows && reinterpret_cast<std::uintptr_t>(here) % line == 0)
      from = reinterpret_cast<const float*>(here);
    else if (floats)
      std::memcpy(block, here, count * sizeof(float));
    else
      task.read(task.rules, column, feature, task.first_row + row, count, block);
    encode(from, count, task.codes + code_offset(row, task.columns));
    row += count;
  }
}

template <class Target>
void encode_columns(const ColumnTask& task) {
  const Range& range = task.row_range;
  for (std::uint32_t row = range.begin; row < range.end;) {
    const std::uint32_t first = row / kCodeRows * kCodeRows;
    const std::uint32_t end =
        range.end - first <= kBlocksTogether * kCodeRows ? range.end : first + kBlocksTogether * kCodeRows;
    const Range some{row, end, 0};
    for (const FeatureSearch& search : task.searches)
      for_blocks(task, search.feature, some, [&](const float* values, unsigned count, std::uint8_t* codes) {
        encode_block<typename Target::Search>(search, values, count, codes);
      });
    for (const FeatureCategories& feature : task.categories)
      for_blocks(task, feature.feature, some, [&](const float* values, unsigned count, std::uint8_t* codes) {
        encode_categories<Target>(feature, task.words, values, 1, count, codes);
      });
    row = end;
  }
}

}  // namespace forestvm::host
