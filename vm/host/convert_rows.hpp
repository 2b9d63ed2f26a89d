// Rows of other types -> float32 rows.
#pragma once

#include <cstddef>

#include <forestvm/backend.hpp>

namespace forestvm::host {

/// Writes `width` values of each of `count` rows, one row after the other, rounded to the nearest float32.
void convert_rows(const RowBlock& rows, std::size_t first, std::size_t count, std::size_t width, float* out);

}  // namespace forestvm::host
