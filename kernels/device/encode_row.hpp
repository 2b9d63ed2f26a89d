// Rank codes of one row, as one thread makes them: see forestvm/core/encoder.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/categories.hpp>
#include <forestvm/core/encoder.hpp>

#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// Returns how many of `count` ascending thresholds are not above x: none, for NaN. The number of steps depends
/// on `count` alone, so that the lanes of a warp take the same number.
FVM_DEVICE std::uint32_t rank_of(float x, const float* thresholds, std::uint32_t count) {
  if (count == 0) return 0;
  std::uint32_t rank = 0;
  FVM_NO_UNROLL
  for (; count > 1; count -= count / 2)
    if (x >= thresholds[rank + count / 2 - 1]) rank += count / 2;
  return x >= thresholds[rank] ? rank + 1 : rank;
}

/// Calls put(column, code) for each of the row's codes.
template <class Put>
FVM_DEVICE void encode_row(const LaunchProgram& program, const float* values, const Put& put) {
  const EncodedFeature* const features = Device::in_global(program.features);
  const ColumnDesc* const columns = Device::in_global(program.columns);
  const float* const ranks = Device::in_global(program.ranks);
  values = Device::in_global(values);
  const std::uint32_t feature_count = program.feature_count;
  FVM_NO_UNROLL
  for (std::uint32_t f = 0; f < feature_count; ++f) {
    const EncodedFeature feature = features[f];
    const float x = values[feature.feature];
    const std::uint32_t rank = rank_of(x, ranks + feature.first_threshold, feature.threshold_count);
    const std::uint32_t end = feature.first_column + feature.column_count;
    FVM_NO_UNROLL
    for (std::uint32_t c = feature.first_column; c < end; ++c) put(c, column_code(columns[c], rank, x != x));
  }
  const std::uint32_t first_category = program.column_count - program.category_count;
  FVM_NO_UNROLL
  for (std::uint32_t c = 0; c < program.category_count; ++c) {
    const CategoryColumn& column = program.categories[c];
    const float x = values[column.feature];
    const std::uint32_t category = category_of(x, least_category(column));
    const bool missing_in = x != x && program.columns[first_category + c].missing_highest != 0;
    put(first_category + c,
        static_cast<std::uint8_t>(is_member(column, program.category_words + column.first_word, category) |
                                  std::uint32_t{missing_in}));
  }
}

}  // namespace forestvm::kernels
