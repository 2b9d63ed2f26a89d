// The columns of a call: an array of them, or the columns of a column-major matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/backend.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

/// The most values of a column, including values before the first row. Views of texts, the largest values, have 16
/// bytes.
inline constexpr std::size_t kMaxColumnValues = static_cast<std::size_t>(PTRDIFF_MAX) / 16;

/// Returns whether a column holds texts.
inline bool is_text(const Column& column) {
  return column.form == ColumnForm::Text || column.form == ColumnForm::TextViews;
}

/// Returns `count` bits, at most 64, from bit `first` on, the lowest first, and reads no byte that holds none of them.
FVM_INLINE std::uint64_t bits_at(const void* bits, std::size_t first, std::size_t count) {
  const auto* const from = static_cast<const std::uint8_t*>(bits) + first / 8;
  const unsigned shift = first % 8;
  const std::size_t bytes = (shift + count + 7) / 8;
  std::uint64_t low = 0;
  if (bytes >= sizeof low)
    __builtin_memcpy(&low, from, sizeof low);
  else
    for (std::size_t i = 0; i < bytes; ++i) low |= std::uint64_t{from[i]} << 8 * i;
  if (bytes > sizeof low)
    low = low >> shift | std::uint64_t{from[sizeof low]} << (64 - shift);
  else
    low >>= shift;
  return count >= 64 ? low : low & ((std::uint64_t{1} << count) - 1);
}

/// The columns of a call, by feature.
struct ColumnSet {
  const Column* columns = nullptr;  ///< The columns; null if they are the columns of a matrix.
  Column first{};                   ///< Matrix: the first column.
  std::size_t column_bytes = 0;     ///< Matrix: bytes from one column to the next.

  FVM_INLINE Column of(std::size_t feature) const {
    if (columns != nullptr) return columns[feature];
    Column column = first;
    column.values = values(feature);
    return column;
  }

  FVM_INLINE const void* values(std::size_t feature) const {
    if (columns != nullptr) return columns[feature].values;
    return static_cast<const std::byte*>(first.values) + feature * column_bytes;
  }
};

}  // namespace forestvm
