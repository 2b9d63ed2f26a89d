// Rank codes of one row, as one thread makes them: see forestvm/core/encoder.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/categories.hpp>
#include <forestvm/core/encoder.hpp>

#include "kernels/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// Gives put(column, code) each of the row's codes.
template <class Put>
FVM_DEVICE void encode_row(const LaunchProgram& program, const float* values, const Put& put) {
  FVM_NO_UNROLL
  for (std::uint32_t f = 0; f < program.feature_count; ++f) {
    const EncodedFeature& feature = program.features[f];
    const float x = values[feature.feature];
    const float* const thresholds = program.ranks + feature.first_threshold;
    std::uint32_t low = 0, high = feature.threshold_count;
    FVM_NO_UNROLL
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (x >= thresholds[middle])
        low = middle + 1;
      else
        high = middle;
    }
    FVM_NO_UNROLL
    for (std::uint32_t c = 0; c < feature.column_count; ++c)
      put(feature.first_column + c, column_code(program.columns[feature.first_column + c], low, x != x));
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
