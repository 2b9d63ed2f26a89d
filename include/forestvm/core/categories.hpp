// Membership codes encode rows for categorical splits. After the columns of ranks (see encoder.hpp) comes one
// column for each combination of a feature, a set of categories and a side for missing values that splits
// test. In it a value that is in the set has code 1 and any other value code 0, as if the column had a single
// threshold that only the values in the set reach. Walkers therefore know nothing of categories.
#pragma once

#include <cstdint>

#include <forestvm/core/platform.hpp>

namespace forestvm {

/// A column of membership codes. Its ColumnDesc has one threshold. Its words in the category_words section
/// hold a bit for each category from the set's least to its greatest; if those lie far apart, the words are
/// the categories themselves.
struct CategoryColumn {
  std::uint32_t feature;
  std::uint32_t first_word;
  std::uint32_t word_count;      ///< Word count, at least 1.
  std::uint32_t first_category;  ///< Category of the first word's lowest bit, a multiple of 32; 0 if listed.
  std::uint8_t fractions;        ///< 1: numbers between -1 and 0 are category 0; 0: they are no category.
  std::uint8_t listed;           ///< 1: the words are the set's categories, ascending; 0: they hold bits.
  std::uint8_t reserved[2];      ///< Zero.
};
static_assert(sizeof(CategoryColumn) == 20);

/// Categories are whole numbers below this: float32 does not have all that are above.
inline constexpr std::uint32_t kMaxCategories = std::uint32_t{1} << 24;
inline constexpr std::uint32_t kNoCategory = UINT32_MAX;

/// Returns the least number that names a category of the column.
FVM_INLINE float least_category(const CategoryColumn& column) {
  return column.fractions != 0 ? -0x1.fffffep-1f : 0.0f;
}

/// Returns the category that a value names, which is its whole part; kNoCategory for NaN and for values that
/// name none.
FVM_INLINE std::uint32_t category_of(float x, float least) {
  const bool inside = x >= least && x < static_cast<float>(kMaxCategories);
  return inside ? static_cast<std::uint32_t>(static_cast<std::int32_t>(x)) : kNoCategory;
}

/// Returns 1 if the category's bit is set, otherwise 0. `words` are the words of a column that holds bits.
FVM_INLINE std::uint32_t has_bit(const CategoryColumn& column, const std::uint32_t* words,
                                 std::uint32_t category) {
  const std::uint32_t bit = category - column.first_category;
  const bool inside = bit / 32 < column.word_count;
  return words[inside ? bit / 32 : 0] >> bit % 32 & std::uint32_t{inside};
}

/// Returns 1 if the category is one of `count` ascending categories, otherwise 0.
FVM_INLINE std::uint32_t is_listed(const std::uint32_t* categories, std::uint32_t count,
                                   std::uint32_t category) {
  std::uint32_t at = 0;
  for (; count > 1; count -= count / 2) at += categories[at + count / 2] <= category ? count / 2 : 0;
  return std::uint32_t{categories[at] == category};
}

/// Returns 1 if the category is in the column's set, otherwise 0. `words` are the column's.
FVM_INLINE std::uint32_t is_member(const CategoryColumn& column, const std::uint32_t* words,
                                   std::uint32_t category) {
  return column.listed != 0 ? is_listed(words, column.word_count, category)
                            : has_bit(column, words, category);
}

}  // namespace forestvm
