// See hashed_values.hpp.
#include "vm/call/hashed_values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <forestvm/internal/city_hash.hpp>

#include "vm/call/csr_rows.hpp"
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

/// The categories for which numbers stand: by their decimal text or, in rows of codes, as codes.
class Categories {
 public:
  explicit Categories(bool hashed) : small_(small_codes()), hashed_(hashed) {}

  /// Returns whether a value stands for a category.
  template <class Value>
  bool has(Value value) const {
    if constexpr (std::is_integral_v<Value>) {
      return !hashed_ || std::in_range<std::int32_t>(value);
    } else {
      const double number = to_double(value);
      if (hashed_) return number >= -0x1p31 && number < 0x1p31 && number == std::trunc(number);
      return std::abs(number) <= kMaxCategoryNumber && number == std::trunc(number);
    }
  }

  /// Returns the code of a value that stands for a category.
  template <class Value>
  std::int32_t code(Value value) const {
    if constexpr (std::is_integral_v<Value>)
      return code_of(value);
    else
      return code_of(static_cast<std::int64_t>(to_double(value)));
  }

 private:
  template <class Integer>
  std::int32_t code_of(Integer number) const {
    if (hashed_) return static_cast<std::int32_t>(number);
    const auto place = static_cast<std::uint64_t>(number);  // negative numbers become large ones
    return place < kSmallNumbers ? small_[place] : category_code(Decimal(number).text());
  }

  const std::array<std::int32_t, kSmallNumbers>& small_;
  bool hashed_;
};

Result<void> check_type(RowType type, bool hashed) {
  if (!hashed || type == RowType::Float64 || type == RowType::Int32 || type == RowType::Int64) return {};
  return Error{ErrorCode::Usage, "",
               "codes of categories are float64, int32 or int64: other types lose digits"};
}

template <class Value>
Error no_category(std::size_t row, std::uint32_t feature, Value value, bool hashed) {
  const char* const what =
      hashed ? " is no code of a category: codes are whole numbers of 32 bits"
             : " is no category: the model compares this feature as text, for which whole numbers "
               "up to 2^53 stand by their decimal text";
  return refused("row " + std::to_string(row) + ", column " + std::to_string(feature),
                 std::string(Decimal(to_double(value)).text()) + what);
}

template <class Value>
Result<void> write_code(const Categories& categories, std::size_t row, std::uint32_t feature, Value value,
                        bool hashed, float* to) {
  if (!categories.has(value)) return no_category(row, feature, value, hashed);
  const std::int32_t code = categories.code(value);
  std::memcpy(to, &code, sizeof code);
  return {};
}

}  // namespace

Result<void> fill_codes(std::span<const std::uint32_t> features, const RowBlock& rows, std::size_t begin,
                        std::size_t count, std::size_t width, float* out) {
  if (features.empty()) return {};
  FVM_TRY(check_type(rows.type, rows.hashed));
  const Categories categories(rows.hashed);
  return with_type(rows.type, [&](auto kind) -> Result<void> {
    for (std::size_t r = 0; r < count; ++r)
      for (const std::uint32_t feature : features) {
        const std::size_t place = (begin + r) * rows.stride + feature * rows.column_stride;
        FVM_TRY(write_code(categories, begin + r, feature, value_at<decltype(kind)>(rows.data, place),
                           rows.hashed, out + r * width + feature));
      }
    return {};
  });
}

Result<void> fill_codes(std::span<const std::uint32_t> features, const CsrRows& rows, std::size_t begin,
                        std::size_t count, std::size_t width, float* out) {
  if (features.empty()) return {};
  FVM_TRY(check_type(rows.type, rows.hashed));
  const Categories categories(rows.hashed);
  return with_type(rows.type, [&](auto kind) -> Result<void> {
    for (std::size_t row = begin; row < begin + count; ++row, out += width) {
      const std::int64_t first = rows.offsets[row], size = rows.offsets[row + 1] - first;
      if (size >= UINT32_MAX) return refused("row " + std::to_string(row), "lists more than 2^32 values");
      // The places of features hold the numbers of their last values, from 1 on, before they hold codes.
      for (const std::uint32_t feature : features) std::memset(out + feature, 0, sizeof(float));
      for (std::uint32_t i = 0; i < size; ++i) {
        const auto feature = static_cast<std::uint32_t>(rows.columns[first + i]);
        const std::uint32_t number = i + 1;
        if (std::binary_search(features.begin(), features.end(), feature))
          std::memcpy(out + feature, &number, sizeof number);
      }
      for (const std::uint32_t feature : features) {
        std::uint32_t number = 0;
        std::memcpy(&number, out + feature, sizeof number);
        const auto place = static_cast<std::size_t>(first + number) - 1;
        if (number == 0)
          FVM_TRY(
              write_code(categories, row, feature, absent_value(rows.absent), rows.hashed, out + feature));
        else
          FVM_TRY(write_code(categories, row, feature, value_at<decltype(kind)>(rows.values, place),
                             rows.hashed, out + feature));
      }
    }
    return {};
  });
}

}  // namespace forestvm::host
