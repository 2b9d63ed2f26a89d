// Encodes rows in the columns of membership codes, which encode_rows leaves out. In: the rows of a range and
// the program's sets of categories. Out: the codes of those rows and no others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <forestvm/core/categories.hpp>
#include <forestvm/core/encoder.hpp>
#include <forestvm/core/ranges.hpp>

namespace forestvm::host {

/// The columns of membership codes of one feature in which the same numbers are categories.
struct FeatureCategories {
  std::uint32_t feature;
  float least;  ///< Least number that is a category.
  std::span<const CategoryColumn> columns;
  std::span<const ColumnDesc> descs;  ///< The ColumnDesc of each of these columns.
  std::uint32_t first_column;
};

struct CategoryTask {
  std::span<const FeatureCategories> features;
  const std::uint32_t* words;
  std::size_t columns;
  Range row_range;
  const float* rows;
  std::size_t row_stride;
  std::uint8_t* codes;
};

using EncodeCategoriesFunction = void (*)(const CategoryTask&);

/// The categories of up to 64 rows of a block in a feature.
struct RowCategories {
  unsigned count;  ///< Number of rows.
  std::uint32_t categories[kCodeRows];
  std::uint8_t missing[kCodeRows];
};

/// Writes the rows' codes in the columns of a feature. `codes` points to the first row's code in column 0.
template <class Target>
[[gnu::noinline]] void write_memberships(const FeatureCategories& feature, const std::uint32_t* words,
                                         const RowCategories& rows, std::uint8_t* codes) {
  for (std::size_t c = 0; c < feature.columns.size(); ++c) {
    const CategoryColumn& column = feature.columns[c];
    const std::uint8_t highest = feature.descs[c].missing_highest;
    std::uint8_t* const to = codes + (feature.first_column + c) * kCodeRows;
    const std::uint32_t* const mine = words + column.first_word;
    const auto put = [&](auto member) {
      for (unsigned r = 0; r < rows.count; ++r)
        to[r] = static_cast<std::uint8_t>(member(rows.categories[r]) | (rows.missing[r] & highest));
    };
    if (column.listed != 0)
      put([&](std::uint32_t category) { return is_listed(mine, column.word_count, category); });
    else
      put([&](std::uint32_t category) { return has_bit(column, mine, category); });
  }
}

/// Writes the codes of up to 64 rows of a block in the columns of a feature, whose values are `stride` apart. `codes`
/// points to the first row's code in column 0.
template <class Target>
[[gnu::noinline]] void encode_categories(const FeatureCategories& feature, const std::uint32_t* words,
                                         const float* values, std::size_t stride, unsigned count,
                                         std::uint8_t* codes) {
  RowCategories rows;
  rows.count = count;
  for (unsigned r = 0; r < count; ++r) {
    const float x = values[r * stride];
    rows.categories[r] = category_of(x, feature.least);
    rows.missing[r] = x != x;
  }
  write_memberships<Target>(feature, words, rows, codes);
}

template <class Target>
void encode_categories(const CategoryTask& task) {
  const Range& range = task.row_range;
  for (std::uint32_t row = range.begin; row < range.end;) {
    const std::uint32_t in_block = std::min(kCodeRows - row % kCodeRows, range.end - row);
    std::uint8_t* const codes = task.codes + code_offset(row, task.columns);
    for (const FeatureCategories& feature : task.features)
      encode_categories<Target>(feature, task.words, task.rows + row * task.row_stride + feature.feature,
                                task.row_stride, in_block, codes);
    row += in_block;
  }
}

}  // namespace forestvm::host
