// The columns of a call: an array of them, or those of a column-major matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/backend.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

struct ColumnSet {
  const Column* columns = nullptr;  ///< The columns; null if they are those of a matrix.
  Column first{};                   ///< Matrix: the first column.
  std::size_t column_bytes = 0;     ///< Matrix: bytes from one column to the next.

  FVM_INLINE Column of(std::size_t feature) const {
    if (columns != nullptr) return columns[feature];
    Column column = first;
    column.values = static_cast<const std::byte*>(first.values) + feature * column_bytes;
    return column;
  }
};

}  // namespace forestvm
