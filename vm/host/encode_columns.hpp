// Encodes columns as rank codes, without making rows of them. In: the rows of a range, the program's features and
// columns. Out: the codes of those rows and no others. Columns of float32 and float64 numbers are read where they
// lie; other columns are converted first. This is one template, for which each CPU target has a search.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <forestvm/internal/column_set.hpp>

#include "vm/host/encode_categories.hpp"
#include "vm/host/encode_doubles.hpp"

namespace forestvm::host {

struct ColumnTask {
  std::span<const FeatureSearch> searches;
  std::span<const FeatureCategories> categories;
  const std::uint32_t* words;  ///< The words of `categories`.
  std::size_t columns;         ///< Number of columns of codes.
  Range row_range;
  ColumnSet from;
  std::size_t first_row;  ///< Row of `from` that is row 0 of the range.
  const EncoderRules* rules;
  std::uint8_t* codes;
};

using EncodeColumnsFunction = void (*)(const ColumnTask&);

/// The blocks of a column that are encoded one after the other, so that its thresholds stay in registers and the
/// processor foresees what is read next.
inline constexpr std::uint32_t kBlocksTogether = 8;

/// Calls encode(row, count) for each block of a range of rows; its rows are `row` to `row` + `count` - 1.
template <class Encode>
FVM_INLINE void for_blocks(const Range& rows, const Encode& encode) {
  for (std::uint32_t row = rows.begin; row < rows.end;) {
    const std::uint32_t count = std::min(kCodeRows - row % kCodeRows, rows.end - row);
    encode(row, count);
    row += count;
  }
}

/// Returns the address of a block of a range of rows in memory for kBlocksTogether blocks.
FVM_INLINE float* block_at(const Range& rows, std::uint32_t row, float* blocks) {
  return blocks + std::size_t{row / kCodeRows - rows.begin / kCodeRows} * kCodeRows;
}

/// Writes what walks compare for the rows of a feature to `blocks`.
FVM_INLINE void read_blocks(const ColumnTask& task, std::uint32_t feature, const Range& rows, float* blocks) {
  const Column column = task.from.of(feature);
  for_blocks(rows, [&](std::uint32_t row, unsigned count) {
    task.rules->read_column(task.rules->rules, column, feature, task.first_row + row, count,
                            block_at(rows, row, blocks));
  });
}

/// The values of a column that are read where they lie. The first value is that of row 0 of a task.
struct ValuesInPlace {
  const std::byte* values = nullptr;       ///< Null: the column must be converted.
  std::size_t size = 0;                    ///< Bytes of a value, a float32 or a float64.
  const std::uint8_t* validity = nullptr;  ///< Null if all rows have a value.
  std::size_t first = 0;                   ///< Number of row 0's bit in `validity`.
  bool rounds_up = false;                  ///< True if the values must be rounded up: see RoundedUp.

  FVM_INLINE ValuesInPlace(const ColumnTask& task, std::uint32_t feature) {
    const Column& column = task.from.columns != nullptr ? task.from.columns[feature] : task.from.first;
    const bool floats = column.type == RowType::Float32;
    const bool number = floats || column.type == RowType::Float64;
    if (column.form != ColumnForm::Numbers || column.values == nullptr || !number ||
        task.rules->special[feature])
      return;
    rounds_up = !floats && task.rules->wide;
    size = floats ? sizeof(float) : sizeof(double);
    first = column.offset + task.first_row;
    values = static_cast<const std::byte*>(task.from.values(feature)) + first * size;
    validity = column.validity;
  }

  /// Prefetches the values of a block.
  FVM_INLINE void prefetch(std::uint32_t row) const {
    const std::byte* const at = values + row * size;
    for (std::size_t byte = 0; byte < kCodeRows * size; byte += kLine) __builtin_prefetch(at + byte);
  }

  /// Returns whether the values are float32 numbers, none of which is missing.
  FVM_INLINE bool is_float32() const { return size == sizeof(float) && validity == nullptr; }

  /// Returns the values from a row on if they are aligned float32 numbers, none of which is missing; otherwise null.
  FVM_INLINE const float* floats(std::uint32_t row) const {
    const std::byte* const at = values + row * sizeof(float);
    const bool aligned = reinterpret_cast<std::uintptr_t>(at) % alignof(float) == 0;
    return is_float32() && aligned ? reinterpret_cast<const float*>(at) : nullptr;
  }

  /// Copies the values of a block's rows to `to`, which is aligned to a cache line, as float32.
  template <class Search>
  FVM_INLINE void load(std::uint32_t row, unsigned count, float* to) const {
    const std::uint64_t all = ~std::uint64_t{0} >> (kCodeRows - count);
    const std::uint64_t present = validity == nullptr ? all : bits_at(validity, first + row, count);
    const std::byte* const at = values + row * size;
    if (size == sizeof(float))
      return Search::load_values(reinterpret_cast<const float*>(at), count, present, to);
    if (!rounds_up) return Search::load_values(reinterpret_cast<const double*>(at), count, present, to);
    Search::round_up(reinterpret_cast<const double*>(at), count, to);
    for (std::uint64_t none = all & ~present; none != 0; none &= none - 1)
      to[__builtin_ctzll(none)] = __builtin_nanf("");
  }

  /// Returns the values that load() rounds up.
  FVM_INLINE RoundedUp source(std::uint32_t row, const EncoderRules* rules) const {
    return {rounds_up ? reinterpret_cast<const double*>(values + row * size) : nullptr, 1, rules};
  }

 private:
  static constexpr std::size_t kLine = 64;
};

/// Encodes a column whose values are not all encoded where they lie. This is a function of its own so that the code
/// for other columns stays small.
template <class Target>
__attribute__((noinline)) void encode_loaded(const ColumnTask& task, const FeatureSearch& search,
                                             const ValuesInPlace& values, const Range& rows) {
  using Search = typename Target::Search;
  alignas(64) float blocks[kBlocksTogether * kCodeRows];
  // All blocks are converted before the first is encoded: what was just written in small pieces is slow to read in
  // large ones.
  if (values.values == nullptr) read_blocks(task, search.feature, rows, blocks);
  for (std::uint32_t row = rows.begin; row < rows.end;) {
    const std::uint32_t count = std::min(kCodeRows - row % kCodeRows, rows.end - row);
    float* const block = block_at(rows, row, blocks);
    if (values.values != nullptr) values.load<Search>(row, count, block);
    encode_rounded<Target>(search, block, count, task.codes + code_offset(row, task.columns),
                           values.source(row, task.rules));
    row += count;
  }
}

/// The most rows that a search encodes one by one, so that it reads no memory behind a column's end.
template <class Search>
consteval std::uint32_t few_rows() {
  if constexpr (requires { Search::kFewRows; })
    return Search::kFewRows;
  else
    return kCodeRows;
}

/// Encodes the float32 values of a feature, and prefetches the values of the next feature.
template <class Target>
FVM_INLINE void encode_floats(const ColumnTask& task, const FeatureSearch& search,
                              const ValuesInPlace& values, const ValuesInPlace& next, const Range& rows) {
  using Search = typename Target::Search;
  for (std::uint32_t row = rows.begin; row < rows.end;) {
    const std::uint32_t count = std::min(kCodeRows - row % kCodeRows, rows.end - row);
    const float* const floats = values.floats(row);
    std::uint8_t* const codes = task.codes + code_offset(row, task.columns);
    if (floats != nullptr && count == kCodeRows) {
      next.prefetch(row);
      Search::encode_block(search, floats, codes);
    } else if (floats != nullptr && count <= few_rows<Search>()) {
      Search::encode_few(search, floats, 1, count, codes, AsTheyAre());
    } else {
      encode_loaded<Target>(task, search, values, {row, row + count, 0});
    }
    row += count;
  }
}

template <class Target>
FVM_INLINE void encode_features(const ColumnTask& task, const Range& rows) {
  if (task.searches.empty()) return;
  ValuesInPlace values(task, task.searches[0].feature);
  for (std::size_t i = 0; i < task.searches.size(); ++i) {
    const std::size_t last = task.searches.size() - 1;
    const ValuesInPlace next(task, task.searches[std::min(i + 1, last)].feature);
    if (values.is_float32())
      encode_floats<Target>(task, task.searches[i], values, next, rows);
    else
      encode_loaded<Target>(task, task.searches[i], values, rows);
    values = next;
  }
}

template <class Target>
void encode_columns(const ColumnTask& task) {
  const Range& range = task.row_range;
  for (std::uint32_t row = range.begin; row < range.end;) {
    const std::uint32_t together = kBlocksTogether * kCodeRows - row % kCodeRows;
    const Range some{row, row + std::min(together, range.end - row), 0};
    encode_features<Target>(task, some);
    for (const FeatureCategories& feature : task.categories) {
      alignas(64) float blocks[kBlocksTogether * kCodeRows];
      read_blocks(task, feature.feature, some, blocks);
      for_blocks(some, [&](std::uint32_t block, unsigned count) {
        encode_categories<Target>(feature, task.words, block_at(some, block, blocks), 1, count,
                                  task.codes + code_offset(block, task.columns));
      });
    }
    row = some.end;
  }
}

}  // namespace forestvm::host
