// Encodes sparse rows as rank codes, without making them dense. In: the rows of a range. Out: the codes of
// those rows and no others. Each column first gets the code of an absent value, then the codes of the values
// that are there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/core/categories.hpp>
#include <forestvm/core/encoder.hpp>
#include <forestvm/core/ranges.hpp>
#include <forestvm/internal/value_rules.hpp>

namespace forestvm::host {

class CsrEncoder {
 public:
  CsrEncoder() = default;

  /// Reads the sections of `program`. A copy of `program`, and `rules`, must live as long as the encoder.
  CsrEncoder(const Program& program, const ValueRules& rules);

  /// Encodes the rows of `range`, which have been checked. `codes` is where row 0's codes begin: see
  /// core/encoder.hpp.
  void encode(const CsrRows& rows, const Range& range, std::uint8_t* codes) const;

 private:
  /// A feature that walks read. It is small, so that the records of many features stay in the caches: each value of
  /// a sparse row needs another record.
  struct Feature {
    std::uint32_t first_threshold, threshold_count;
    std::uint32_t first_column, column_count;
    std::uint32_t first_category, category_count;  ///< First and number of the columns of membership codes.
    const ValueRules::Special* special;            ///< The feature's special rules; null if it has none.
  };

  std::uint32_t rank(const Feature& feature, float x) const;
  template <class Value>
  void encode_row(const CsrRows& rows, std::size_t row, std::uint8_t* codes) const;
  std::uint8_t category_code(std::uint32_t category, float x, bool missing) const;
  std::vector<std::uint8_t> codes_of(float value) const;

  const ValueRules* rules_ = nullptr;
  /// Index in features_ of each feature, or kNotRead if no walk reads it.
  std::vector<std::uint32_t> indices_;
  std::vector<Feature> features_;
  std::span<const float> thresholds_;
  std::span<const ColumnDesc> columns_;
  std::span<const CategoryColumn> categories_;  ///< Membership columns, which are the last of columns_.
  std::span<const std::uint32_t> category_words_;
  std::vector<std::uint8_t> missing_codes_, zero_codes_;  ///< Codes of a missing value, and of 0, by column.
};

}  // namespace forestvm::host
