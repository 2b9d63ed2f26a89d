// See hashed_values.hpp.
#include "vm/call/hashed_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <forestvm/internal/city_hash.hpp>
#include <forestvm/internal/formatted.hpp>

#include "vm/call/csr_rows.hpp"
#include "vm/call/read_column.hpp"
#include "vm/call/row_value.hpp"

namespace forestvm::host {
namespace {

constexpr std::size_t kSmallNumbers = 1024;

/// The decimal text of a number.
class Decimal {
 public:
  template <class Number>
  explicit Decimal(Number number) : end_(std::to_chars(text_, text_ + sizeof text_, number).ptr) {}
  std::string_view text() const { return {text_, static_cast<std::size_t>(end_ - text_)}; }

 private:
  char text_[32];
  const char* end_;
};

/// Returns the codes of 0 to kSmallNumbers - 1, which are most of the numbers that stand for categories.
const std::array<std::int32_t, kSmallNumbers>& small_codes() {
  static const auto codes = [] {
    std::array<std::int32_t, kSmallNumbers> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = category_code(Decimal(i).text());
    return all;
  }();
  return codes;
}

/// A value of a row.
struct Number {
  double value;
  bool is_whole;       ///< True if it is a whole number whose digits are all known.
  bool is_large;       ///< True if it is beyond int64; then `whole` has its lowest 64 bits.
  std::int64_t whole;  ///< The number, if `is_whole`.
};

template <class Value>
Number number_at(const void* values, std::size_t i) {
  const auto value = value_at<Value>(values, i);
  const double number = to_double(value);
  if constexpr (std::is_integral_v<Value>) {
    return {number, true, !std::in_range<std::int64_t>(value), static_cast<std::int64_t>(value)};
  } else {
    const bool whole = std::abs(number) <= kMaxCategoryNumber && number == std::trunc(number);
    return {number, whole, false, whole ? static_cast<std::int64_t>(number) : 0};
  }
}

/// Reads value number `i` of one type. Only this function is compiled for each type, which keeps the library small.
using ReadNumber = Number (*)(const void* values, std::size_t i);

ReadNumber reader_of(RowType type) {
  return with_type(type, [](auto kind) -> ReadNumber { return number_at<decltype(kind)>; });
}

/// Returns the code of the category for which a number stands: the hash of its decimal text or, in rows of codes,
/// the number.
std::optional<std::int32_t> code_of(const Number& number, bool hashed) {
  if (!number.is_whole) return std::nullopt;
  if (hashed) {
    if (number.is_large || !std::in_range<std::int32_t>(number.whole)) return std::nullopt;
    return static_cast<std::int32_t>(number.whole);
  }
  const auto index = static_cast<std::uint64_t>(number.whole);  // negative numbers become large ones
  if (index < kSmallNumbers) return small_codes()[index];
  return category_code(number.is_large ? Decimal(index).text() : Decimal(number.whole).text());
}

/// Finds the codes of most numbers without a call for each: small numbers of categories, and codes in rows of
/// codes.
class QuickCodes {
 public:
  QuickCodes(RowType type, bool hashed)
      : small_(small_codes().data()),
        bytes_(type == RowType::Float32   ? sizeof(float)
               : type == RowType::Float64 ? sizeof(double)
                                          : 0),
        hashed_(hashed) {}

  /// Writes the code of value `i` to `to`. Returns false if this class cannot find it.
  bool write(const void* values, std::size_t i, float* to) const {
    if (bytes_ == 0) return false;
    const double x =
        bytes_ == sizeof(float) ? to_double(value_at<float>(values, i)) : value_at<double>(values, i);
    if (!(x >= (hashed_ ? -0x1p31 : 0) && x < (hashed_ ? 0x1p31 : kSmallNumbers))) return false;
    const auto whole = static_cast<std::int32_t>(x);
    if (whole != x) return false;
    std::memcpy(to, hashed_ ? &whole : small_ + whole, sizeof whole);
    return true;
  }

 private:
  const std::int32_t* small_;
  std::size_t bytes_;
  bool hashed_;
};

Result<void> check_type(RowType type, bool hashed) {
  if (!hashed || type == RowType::Float64 || type == RowType::Int32 || type == RowType::Int64) return {};
  return usage("codes of categories are float64, int32 or int64: other types lose digits");
}

std::string place(std::size_t row, std::uint32_t column) {
  return formatted("row {}, column {}", row, column);
}

[[gnu::cold]] Failure no_category(std::size_t row, std::uint32_t feature, double value, bool hashed) {
  const char* const what =
      hashed
          ? " is not a code of a category: codes are whole numbers of 32 bits"
          : " is not a category: the model compares this feature as text, for which whole numbers up to 2^53 "
            "stand by their decimal text";
  return refused(place(row, feature), std::string(Decimal(value).text()) + what);
}

Result<void> write_code(std::size_t row, std::uint32_t feature, const Number& number, bool hashed,
                        float* to) {
  const std::optional<std::int32_t> code = code_of(number, hashed);
  if (!code) return no_category(row, feature, number.value, hashed);
  std::memcpy(to, &*code, sizeof *code);
  return {};
}

}  // namespace

Result<void> fill_codes(std::span<const std::uint32_t> features, const RowBlock& rows, std::size_t begin,
                        std::size_t count, std::size_t width, float* out) {
  if (features.empty()) return {};
  FVM_TRY(check_type(rows.type, rows.hashed));
  const ReadNumber read = reader_of(rows.type);
  const QuickCodes quick(rows.type, rows.hashed);
  for (std::size_t r = 0; r < count; ++r)
    for (const std::uint32_t feature : features) {
      const std::size_t i = (begin + r) * rows.stride + feature * rows.column_stride;
      float* const to = out + r * width + feature;
      if (quick.write(rows.data, i, to)) continue;
      FVM_TRY(write_code(begin + r, feature, read(rows.data, i), rows.hashed, to));
    }
  return {};
}

Result<void> fill_codes(std::span<const std::uint32_t> features, const CsrRows& rows, std::size_t begin,
                        std::size_t count, std::size_t width, float* out) {
  if (features.empty()) return {};
  FVM_TRY(check_type(rows.type, rows.hashed));
  const ReadNumber read = reader_of(rows.type);
  const float absent_float = absent_value(rows.absent);
  const Number absent = number_at<float>(&absent_float, 0);
  for (std::size_t row = begin; row < begin + count; ++row, out += width) {
    const std::int64_t first = rows.offsets[row], size = rows.offsets[row + 1] - first;
    if (size >= UINT32_MAX) return refused(formatted("row {}", row), "lists 2^32 - 1 values or more");
    // Before the codes are written, the columns of features hold the numbers of their last values, from 1 on.
    for (const std::uint32_t feature : features) std::memset(out + feature, 0, sizeof(float));
    for (std::uint32_t i = 0; i < size; ++i) {
      const auto feature = static_cast<std::uint32_t>(rows.columns[first + i]);
      const std::uint32_t last = i + 1;
      if (std::binary_search(features.begin(), features.end(), feature))
        std::memcpy(out + feature, &last, sizeof last);
    }
    for (const std::uint32_t feature : features) {
      std::uint32_t last = 0;
      std::memcpy(&last, out + feature, sizeof last);
      const Number number =
          last == 0 ? absent : read(rows.values, static_cast<std::size_t>(first + last) - 1);
      FVM_TRY(write_code(row, feature, number, rows.hashed, out + feature));
    }
  }
  return {};
}

namespace {

/// Writes the codes of one feature of columns, row by row, `width` values apart.
Result<void> fill_column(const Column& column, std::uint32_t feature, bool hashed, std::size_t begin,
                         std::size_t count, std::size_t width, float* out) {
  constexpr Number missing = {std::numeric_limits<double>::quiet_NaN(), false, false, 0};
  const bool codes = column.form == ColumnForm::Indices || (hashed && column.form == ColumnForm::Numbers);
  if (column.form == ColumnForm::Numbers) FVM_TRY(check_type(column.type, hashed));
  const ReadNumber read = reader_of(column.type);
  for (std::size_t r = 0; r < count; ++r, out += width) {
    const std::size_t row = begin + r, i = column.offset + row;
    Number number = missing;
    if (present(column, row, 1) != 0) {
      if (is_text(column)) {
        const auto text = text_at(column, row);
        if (!text) return fail(ErrorCode::Usage, place(row, feature), text.error().message);
        const std::int32_t code = category_code(*text);
        std::memcpy(out, &code, sizeof code);
        continue;
      }
      if (column.form == ColumnForm::Bits) {
        const std::uint8_t bit = bits_at(column.values, i, 1) != 0;
        number = number_at<std::uint8_t>(&bit, 0);
      } else if (column.form == ColumnForm::Numbers) {
        number = read(column.values, i);
      } else {
        const auto index = static_cast<std::size_t>(read(column.values, i).whole);  // a negative one is large
        if (index < column.category_count) number = number_at<double>(column.categories, index);
      }
    }
    FVM_TRY(write_code(row, feature, number, codes, out));
  }
  return {};
}

}  // namespace

Result<void> fill_codes(std::span<const std::uint32_t> features, const ColumnRows& rows, std::size_t begin,
                        std::size_t count, std::size_t width, float* out) {
  for (const std::uint32_t feature : features)
    FVM_TRY(fill_column(rows.columns[feature], feature, rows.hashed, begin, count, width, out + feature));
  return {};
}

}  // namespace forestvm::host
