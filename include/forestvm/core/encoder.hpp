// Rank codes: a row's value of a feature becomes the number of the model's thresholds at or below it, so that every
// test is a compare of bytes. A feature with more than 255 thresholds takes a column for each 255, in which ranks
// are counted from the column's first threshold and end at its last. The column also decides where missing values
// go: a feature whose tests send them to different sides has a column for each side. Codes lose nothing that a test
// needs: for any value x, x < thresholds[first + code] exactly if the column's code of x is at most `code`.
//
// Codes lie in blocks of 64 rows. A block holds one column after the other, 64 bytes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <forestvm/core/platform.hpp>

namespace forestvm {

inline constexpr unsigned kCodeRows = 64;           ///< Rows of a block of codes.
inline constexpr unsigned kColumnThresholds = 255;  ///< Most thresholds of a column.
/// The code of a test at which no row goes right, because no rank is above it.
inline constexpr std::uint8_t kNeverRight = 255;
/// The most columns of codes. The byte offset of a column in a block, column x kCodeRows, fits 32 bits with
/// room to add.
inline constexpr std::uint32_t kMaxColumns = std::uint32_t{1} << 22;

/// A feature that is encoded, and its columns.
struct EncodedFeature {
  std::uint32_t feature;
  std::uint32_t first_threshold;  ///< Index of the feature's first threshold in the ranks section.
  std::uint32_t threshold_count;  ///< Number of the feature's thresholds, which ascend and are all different.
  std::uint32_t first_column;
  std::uint32_t column_count;
};
static_assert(sizeof(EncodedFeature) == 20);

/// A column of codes.
struct ColumnDesc {
  /// Number of the column's first threshold, counted from the feature's first.
  std::uint32_t first;
  std::uint16_t count;           ///< Number of the column's thresholds: 1 … 255.
  std::uint8_t missing_highest;  ///< 1: a missing value is above all thresholds; 0: below all.
  std::uint8_t reserved;         ///< Zero.
};
static_assert(sizeof(ColumnDesc) == 8);

/// Returns the code of a value that has `rank` of the feature's thresholds at or below it.
FVM_INLINE std::uint8_t column_code(const ColumnDesc& column, std::uint32_t rank, bool missing) {
  const std::uint32_t above = rank > column.first ? rank - column.first : 0;
  const std::uint32_t code = above < column.count ? above : column.count;
  const std::uint32_t none = column.missing_highest != 0 ? column.count : 0;
  return static_cast<std::uint8_t>(missing ? none : code);
}

/// Returns the byte offset of a row's code in column 0.
FVM_INLINE std::size_t code_offset(std::size_t row, std::size_t columns) {
  return row / kCodeRows * (columns * kCodeRows) + row % kCodeRows;
}

/// Returns a row's code in a column. Codes is a pointer to the row's code in column 0, or an object whose
/// code(column) returns the row's code in a column.
template <class Codes>
FVM_INLINE std::uint8_t code_of(const Codes& codes, std::uint32_t column) {
  if constexpr (std::is_pointer_v<Codes>)
    return codes[std::size_t{column} * kCodeRows];
  else
    return codes.code(column);
}

/// The bytes after the last code that must be readable too, because codes are gathered as words.
inline constexpr std::size_t kCodeSlack = 64;

/// Returns the bytes that the codes of `rows` rows take.
FVM_INLINE std::size_t code_bytes(std::size_t rows, std::size_t columns) {
  return (rows + kCodeRows - 1) / kCodeRows * (columns * kCodeRows);
}

}  // namespace forestvm
