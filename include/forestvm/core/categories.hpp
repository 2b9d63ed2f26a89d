// Membership codes: how rows are encoded for categorical splits. Among the columns of codes, after those of
// ranks (see encoder.hpp), comes one for each set of categories (of a feature, and side of missing values)
// that a split asks for. In it a value that is in the set has code 1, any other 0, as if the column were one
// of ranks with a single threshold that the values in the set have reached: so walkers know nothing of
// categories.
#pragma once

#include <cstdint>

#include <forestvm/core/platform.hpp>

namespace forestvm {

/// A column of memberships. Its ColumnDesc is that of one threshold. Its words in the category_words section
/// hold a bit for each category from the set's least to its greatest; or, where those lie far apart, they are
/// the categories.
struct CategoryColumn {
  std::uint32_t feature;
  std::uint32_t first_word;
  std::uint32_t word_count;      ///< at least 1
  std::uint32_t first_category;  ///< that of the first word's lowest bit, a multiple of 32; 0 where listed
  std::uint8_t fractions;        ///< 1: numbers between -1 and 0 are category 0; 0: they are no category
  std::uint8_t listed;           ///< 1: the words are the set's categories, ascending; 0: they hold bits
  std::uint8_t reserved[2];      ///< zero
};
static_assert(sizeof(CategoryColumn) == 20);

/// Categories are whole numbers below this: float32 does not have all that are above.
inline constexpr std::uint32_t kMostCategories = std::uint32_t{1} << 24;
inline constexpr std::uint32_t kNoCategory = UINT32_MAX;

/// The least number that names a category of the column.
FVM_INLINE float least_category(const CategoryColumn& column) {
  return column.fractions != 0 ? -0x1.fffffep-1f : 0.0f;
}

/// The category that a value names: its whole part. kNoCategory for NaN and what lies outside.
FVM_INLINE std::uint32_t category_of(float x, float least) {
  const bool inside = x >= least && x < static_cast<float>(kMostCategories);
  return inside ? static_cast<std::uint32_t>(static_cast<std::int32_t>(x)) : kNoCategory;
}

/// 1 if the category's bit is set. `words`: those of a column that holds bits.
FVM_INLINE std::uint32_t has_bit(const CategoryColumn& column, const std::uint32_t* words,
                                 std::uint32_t category) {
  const std::uint32_t bit = category - column.first_category;
  const bool inside = bit / 32 < column.word_count;
  return words[inside ? bit / 32 : 0] >> bit % 32 & std::uint32_t{inside};
}

/// 1 if the category is one of `count` ascending ones.
FVM_INLINE std::uint32_t is_listed(const std::uint32_t* categories, std::uint32_t count,
                                   std::uint32_t category) {
  std::uint32_t at = 0;
  for (; count > 1; count -= count / 2) at += categories[at + count / 2] <= category ? count / 2 : 0;
  return std::uint32_t{categories[at] == category};
}

/// 1 if the category is in the column's set. `words`: the column's.
FVM_INLINE std::uint32_t is_member(const CategoryColumn& column, const std::uint32_t* words,
                                   std::uint32_t category) {
  return column.listed != 0 ? is_listed(words, column.word_count, category)
                            : has_bit(column, words, category);
}

}  // namespace forestvm
