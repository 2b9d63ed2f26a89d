// See encode_csr.hpp.
#include "vm/host/encode_csr.hpp"

#include <cmath>
#include <cstring>

#include "vm/call/csr_rows.hpp"
#include "vm/call/row_value.hpp"

namespace forestvm::host {
namespace {

constexpr std::uint32_t kNotRead = UINT32_MAX;

}  // namespace

[[gnu::cold]] CsrEncoder::CsrEncoder(const Program& program, const ValueRules& rules)
    : rules_(&rules),
      thresholds_(program.ranks()),
      columns_(program.columns()),
      categories_(program.category_columns()),
      category_words_(program.category_words()) {
  if (columns_.empty()) return;
  indices_.assign(row_width(program.meta()), kNotRead);
  const auto record = [&](std::uint32_t feature) -> Feature& {
    std::uint32_t& at = indices_[feature];
    if (at == kNotRead) {
      at = static_cast<std::uint32_t>(features_.size());
      features_.push_back({0, 0, 0, 0, 0, 0, rules.special(feature)});
    }
    return features_[at];
  };
  for (const EncodedFeature& feature : program.encoded_features()) {
    Feature& mine = record(feature.feature);
    mine.first_threshold = feature.first_threshold;
    mine.threshold_count = feature.threshold_count;
    mine.first_column = feature.first_column;
    mine.column_count = feature.column_count;
  }
  for (std::uint32_t c = 0; c < categories_.size(); ++c) {
    Feature& mine = record(categories_[c].feature);
    if (mine.category_count++ == 0) mine.first_category = c;
  }
  missing_codes_ = codes_of(absent_value(Absent::Missing));
  zero_codes_ = codes_of(absent_value(Absent::Zero));
}

/// Returns the code of every column for rows whose features all have this value, zero or NaN.
[[gnu::cold]] std::vector<std::uint8_t> CsrEncoder::codes_of(float value) const {
  const auto value_of = [&](const Feature& feature) {
    return feature.special == nullptr ? value : rules_->round(*feature.special, static_cast<double>(value));
  };
  std::vector<std::uint8_t> codes;
  for (const Feature& feature : features_) {
    const float x = value_of(feature);
    for (const ColumnDesc& column : columns_.subspan(feature.first_column, feature.column_count))
      codes.push_back(column_code(column, rank(feature, x), std::isnan(x)));
  }
  for (std::uint32_t c = 0; c < categories_.size(); ++c) {
    const float x = value_of(features_[indices_[categories_[c].feature]]);
    codes.push_back(category_code(c, x, std::isnan(x)));
  }
  return codes;
}

std::uint8_t CsrEncoder::category_code(std::uint32_t category, float x, bool missing) const {
  const CategoryColumn& column = categories_[category];
  const ColumnDesc& desc = columns_[columns_.size() - categories_.size() + category];
  const std::uint32_t member =
      is_member(column, category_words_.data() + column.first_word, category_of(x, least_category(column)));
  return column_code(desc, member, missing);
}

/// Returns how many thresholds are at or below x. Each step halves the thresholds that are left, without branches
/// on x.
inline std::uint32_t CsrEncoder::rank(const Feature& feature, float x) const {
  const float* at = thresholds_.data() + feature.first_threshold;
  const float* const first = at;
  for (std::uint32_t left = feature.threshold_count; left != 0;) {
    const std::uint32_t half = (left + 1) / 2;
    at += x >= at[half - 1] ? half : 0;
    left -= half;
  }
  return static_cast<std::uint32_t>(at - first);
}

template <class Value>
void CsrEncoder::encode_row(const CsrRows& rows, std::size_t row, std::uint8_t* codes) const {
  for (std::int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
    const auto number = static_cast<std::uint32_t>(rows.columns[i]);
    const std::uint32_t index = indices_[number];
    if (index == kNotRead) continue;
    const Feature& feature = features_[index];
    const float x =
        compared(*rules_, number, feature.special, value_at<Value>(rows.values, static_cast<std::size_t>(i)));
    const bool missing = std::isnan(x);
    const std::uint32_t found = rank(feature, x);
    for (std::uint32_t c = feature.first_column; c < feature.first_column + feature.column_count; ++c)
      codes[std::size_t{c} * kCodeRows] = column_code(columns_[c], found, missing);
    const std::size_t ranks = columns_.size() - categories_.size();
    for (std::uint32_t c = feature.first_category; c < feature.first_category + feature.category_count; ++c)
      codes[(ranks + c) * kCodeRows] = category_code(c, x, missing);
  }
}

void CsrEncoder::encode(const CsrRows& rows, const Range& range, std::uint8_t* codes) const {
  if (columns_.empty()) return;
  const std::vector<std::uint8_t>& absent = rows.absent == Absent::Zero ? zero_codes_ : missing_codes_;
  for (std::uint32_t row = range.begin; row < range.end;) {
    // Other threads may be writing the codes of the block's other rows.
    const std::uint32_t in_block = std::min(kCodeRows - row % kCodeRows, range.end - row);
    std::uint8_t* const to = codes + code_offset(row, absent.size());
    for (std::size_t column = 0; column < absent.size(); ++column)
      std::memset(to + column * kCodeRows, absent[column], in_block);
    with_type(rows.type, [&](auto value) {
      for (std::uint32_t r = 0; r < in_block; ++r) encode_row<decltype(value)>(rows, row + r, to + r);
    });
    row += in_block;
  }
}

}  // namespace forestvm::host
