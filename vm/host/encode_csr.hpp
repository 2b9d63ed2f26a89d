// Sparse rows -> rank codes, without the dense rows between. In: rows of a range. Out: the codes of those
// rows and no others: in each column first what an absent value has, then the codes of the values that are
// there.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/core/categories.hpp>
#include <forestvm/core/encoder.hpp>
#include <forestvm/core/ranges.hpp>

namespace forestvm::host {

class CsrEncoder {
 public:
  CsrEncoder() = default;

  /// Reads the sections of `program`, a copy of which must be kept as long.
  explicit CsrEncoder(const Program& program);

  /// Rows of `range`, which are checked; `codes`: of row 0, see core/encoder.hpp.
  void encode(const CsrRows& rows, const Range& range, std::uint8_t* codes) const;

 private:
  /// Little, so that those of many features stay in the caches: values come feature by feature.
  struct Feature {
    std::uint32_t first_threshold, threshold_count;
    std::uint32_t first_column, column_count;
    std::uint32_t first_category, category_count;  ///< of the columns of memberships
    float missing_below;                           ///< so much and less on either side of zero is missing
  };

  static bool is_missing(const Feature& feature, float x);
  std::uint32_t rank(const Feature& feature, float x) const;
  template <class Value>
  void encode_row(const CsrRows& rows, std::size_t row, std::uint8_t* codes) const;
  std::uint8_t category_code(std::uint32_t category, float x, bool missing) const;
  std::vector<std::uint8_t> codes_of(float value) const;

  std::vector<std::uint32_t> places_;  ///< by feature: which of features_; kNotRead if no walk reads it
  std::vector<Feature> features_;
  std::span<const float> thresholds_;
  std::span<const ColumnDesc> columns_;
  std::span<const CategoryColumn> categories_;  ///< of the last of columns_
  std::span<const std::uint32_t> category_words_;
  std::vector<std::uint8_t> missing_codes_, zero_codes_;  ///< by column
};

}  // namespace forestvm::host
