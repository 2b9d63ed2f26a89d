// See read_column.hpp.
#include "vm/call/read_column.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/formatted.hpp>

#include "vm/call/row_value.hpp"

namespace forestvm::host {
namespace {

std::string place(std::size_t row, std::uint32_t column) {
  return formatted("row {}, column {}", row, column);
}

Failure wrong(std::size_t row, std::uint32_t column, std::string_view what) {
  return fail(ErrorCode::Usage, place(row, column), what);
}

/// Returns a word whose lowest `count` bits are set.
std::uint64_t ones(std::size_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

/// Expands bits to bytes.
void read_bits(const Column& column, std::size_t row, std::size_t count, std::uint8_t* bytes) {
  const std::uint64_t bits = bits_at(column.values, column.offset + row, count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = bits >> i & 1;
}

/// Looks indices up in the dictionary. Rows without a value may hold an index that the dictionary lacks, which
/// counts as missing.
void read_indices(const Column& column, std::size_t row, std::size_t count, double* numbers) {
  with_type(column.type, [&](auto kind) {
    using Value = decltype(kind);
    if constexpr (std::is_integral_v<Value>) {
      for (std::size_t i = 0; i < count; ++i) {
        const auto index = value_at<Value>(column.values, column.offset + row + i);
        const bool known =
            std::in_range<std::size_t>(index) && static_cast<std::size_t>(index) < column.category_count;
        // NOLINTNEXTLINE(bugprone-signed-char-misuse): a known index is not negative.
        numbers[i] = known ? column.categories[static_cast<std::size_t>(index)]
                           : std::numeric_limits<double>::quiet_NaN();
      }
    }
  });
}

/// Returns the offset number `i` of a column of texts.
std::int64_t text_offset(const Column& column, std::size_t i) {
  return column.type == RowType::Int32 ? value_at<std::int32_t>(column.values, i)
                                       : value_at<std::int64_t>(column.values, i);
}

/// A record of a column of views.
struct TextView {
  std::int32_t size;
  char inside[4];  ///< The first characters. A short text goes on in the fields after it.
  std::int32_t buffer, offset;
};
static_assert(sizeof(TextView) == 16);
constexpr std::int32_t kMaxInside = 12;

Result<std::string_view> view_at(const Column& column, std::size_t i) {
  const auto bad = [](const char* what) { return usage(what); };
  const char* const record = static_cast<const char*>(column.values) + i * sizeof(TextView);
  TextView view;
  std::memcpy(&view, record, sizeof view);
  if (view.size < 0) return bad("its text has a negative size");
  const auto size = static_cast<std::size_t>(view.size);
  if (view.size <= kMaxInside) return std::string_view(record + offsetof(TextView, inside), size);
  if (view.buffer < 0 || static_cast<std::size_t>(view.buffer) >= column.buffer_count)
    return bad("its text is in a buffer that the column does not have");
  const auto buffer = static_cast<std::size_t>(view.buffer);
  const auto room = value_at<std::int64_t>(column.buffers[column.buffer_count], buffer);
  if (view.offset < 0 || std::int64_t{view.offset} + view.size > room)
    return bad("its text leaves its buffer");
  return std::string_view(static_cast<const char*>(column.buffers[buffer]) + view.offset, size);
}

Result<void> check_indices(const Column& column, std::uint32_t feature, std::size_t row, std::size_t count) {
  return with_type(column.type, [&](auto kind) -> Result<void> {
    using Value = decltype(kind);
    if constexpr (std::is_integral_v<Value>) {
      const std::uint64_t here = present(column, row, count);
      for (std::size_t i = 0; i < count; ++i) {
        const auto index = value_at<Value>(column.values, column.offset + row + i);
        const bool known = index < Value{} ? column.negative_is_missing
                                           : static_cast<std::uint64_t>(index) < column.category_count;
        if ((here >> i & 1) == 0) continue;
        if (known && column.refuses && index >= Value{} &&
            // NOLINTNEXTLINE(bugprone-signed-char-misuse): the index is not negative.
            std::bit_cast<std::uint64_t>(column.categories[static_cast<std::size_t>(index)]) ==
                kRefusedCategory)
          return refused(
              place(row + i, feature),
              "its category is not one of the model's: its trainer refuses others, or takes them for one of these");
        if (known) continue;
        return wrong(row + i, feature,
                     formatted("index {} in a dictionary of {}", index, column.category_count));
      }
    }
    return {};
  });
}

Result<void> check_numbers(const Column& column, std::uint32_t feature, std::size_t row, std::size_t count) {
  return with_type(column.type, [&](auto kind) -> Result<void> {
    using Value = decltype(kind);
    if constexpr (!kIsFloat64<Value>) {
      const std::uint64_t here = present(column, row, count);
      for (std::size_t i = 0; i < count; ++i) {
        const auto value = value_at<Value>(column.values, column.offset + row + i);
        if ((here >> i & 1) == 0 || is_exact(value)) continue;
        return not_exact(place(row + i, feature), inexact_text(column.type, &value),
                         "pass the column as float64");
      }
    }
    return {};
  });
}

}  // namespace

std::uint64_t present(const Column& column, std::size_t row, std::size_t count) {
  if (column.values == nullptr) return 0;  // each value is missing, or no walk reads the column
  return column.validity == nullptr ? ones(count) : bits_at(column.validity, column.offset + row, count);
}

double number_at(const Column& column, std::size_t row) {
  const std::size_t i = column.offset + row;
  if (column.form == ColumnForm::Bits) return static_cast<double>(bits_at(column.values, i, 1));
  if (column.form == ColumnForm::Indices) {
    double number = 0;
    read_indices(column, row, 1, &number);
    return number;
  }
  return with_type(column.type,
                   [&](auto kind) { return to_double(value_at<decltype(kind)>(column.values, i)); });
}

Result<std::string_view> text_at(const Column& column, std::size_t row) {
  const std::size_t i = column.offset + row;
  if (column.form == ColumnForm::TextViews) return view_at(column, i);
  const std::int64_t begin = text_offset(column, i), end = text_offset(column, i + 1);
  if (begin < 0 || end < begin) return usage("its text ends before it begins");
  if (column.text == nullptr && begin != end)
    return usage("its text is in a buffer that the column does not have");
  return std::string_view(column.text + begin, static_cast<std::size_t>(end - begin));
}

void read_column(const ValueRules& rules, const Column& column, std::uint32_t feature, std::size_t row,
                 std::size_t count, float* out) {
  const ValueRules::Special* const special = rules.special(feature);
  const auto convert = [&](auto kind, const void* values, std::size_t first) {
    convert_run<decltype(kind)>(rules, feature, special, values, first, 1, count, out);
  };
  union {
    std::uint8_t bytes[kColumnRows];
    double numbers[kColumnRows];
  };
  const std::uint64_t here = present(column, row, count);
  if (here == 0) {
    std::fill_n(out, count, std::numeric_limits<float>::quiet_NaN());
    return;
  }
  if (column.form == ColumnForm::Numbers) {
    with_type(column.type, [&](auto kind) { convert(kind, column.values, column.offset + row); });
  } else if (column.form == ColumnForm::Bits) {
    read_bits(column, row, count, bytes);
    convert(Bool(), bytes, 0);
  } else if (column.form == ColumnForm::Indices) {
    read_indices(column, row, count, numbers);
    convert(double(), numbers, 0);
  }
  for (std::uint64_t none = ~here & ones(count); none != 0; none &= none - 1)
    out[std::countr_zero(none)] = std::numeric_limits<float>::quiet_NaN();
}

Result<void> read_texts(const ValueRules& rules, const CategoryTexts& texts, const Column& column,
                        std::uint32_t feature, std::size_t row, std::size_t count, float* out) {
  double numbers[kColumnRows];
  const std::uint64_t here = present(column, row, count);
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = std::numeric_limits<double>::quiet_NaN();
    if ((here >> i & 1) == 0) continue;
    const auto text = text_at(column, row + i);
    if (!text) return wrong(row + i, feature, text.error().message);
    const auto number = texts.number_of(feature, *text);
    if (!number) return refused(place(row + i, feature), number.error().message);
    numbers[i] = *number;
  }
  convert_run<double>(rules, feature, rules.special(feature), numbers, 0, 1, count, out);
  return {};
}

Result<void> check_column(const ValueRules& rules, const Column& column, std::uint32_t feature,
                          std::size_t row, std::size_t count) {
  const bool numbers = column.form == ColumnForm::Numbers && rules.wide();
  if (column.values == nullptr || (column.form != ColumnForm::Indices && !numbers)) return {};
  for (std::size_t begin = 0; begin < count; begin += kColumnRows) {
    const std::size_t rows = std::min(kColumnRows, count - begin);
    FVM_TRY(numbers ? check_numbers(column, feature, row + begin, rows)
                    : check_indices(column, feature, row + begin, rows));
  }
  return {};
}

}  // namespace forestvm::host
