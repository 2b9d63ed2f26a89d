// Converts dense rows and columns of any type to float32 rows as walks read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <forestvm/backend.hpp>
#include <forestvm/internal/category_texts.hpp>
#include <forestvm/internal/column_set.hpp>
#include <forestvm/internal/value_rules.hpp>
#include <forestvm/result.hpp>

namespace forestvm::host {

/// The shape of converted rows.
struct ConvertedShape {
  std::size_t features;  ///< Number of the rows' features.
  std::size_t width;     ///< Values from one row to the next.
  /// The features that are converted, ascending. Only columns, and rows of programs that compare in float64, leave the
  /// other features out; in all other rows every feature is converted.
  std::span<const std::uint32_t> read{};
};

/// Writes what walks compare for the features of each of `count` rows from `first` on, one row after the other.
void convert_rows(const ValueRules& rules, const RowBlock& rows, std::size_t first, std::size_t count,
                  const ConvertedShape& shape, float* out);
/// Converts columns. `texts` may be null if no column holds texts. Returns the errors of read_texts.
Result<void> convert_rows(const ValueRules& rules, const ColumnSet& columns, const CategoryTexts* texts,
                          std::size_t first, std::size_t count, const ConvertedShape& shape, float* out);

}  // namespace forestvm::host
