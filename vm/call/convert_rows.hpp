// Converts rows of other types, and rows in which zeros are missing, to float32 rows as walks read them.
#pragma once

#include <cstddef>

#include <span>

#include <forestvm/backend.hpp>

namespace forestvm::host {

/// Writes `width` values of each of `count` rows, one row after the other, rounded to the nearest float32.
void convert_rows(const RowBlock& rows, std::size_t first, std::size_t count, std::size_t width, float* out);

/// Makes the tiny numbers (see kTiny) of these features missing, in place.
void mark_zeros_missing(std::span<const std::uint32_t> features, std::size_t count, std::size_t width,
                        float* rows);

}  // namespace forestvm::host
