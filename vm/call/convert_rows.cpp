// See convert_rows.hpp.
#include "vm/call/convert_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "vm/call/read_column.hpp"
#include "vm/call/row_value.hpp"

namespace forestvm::host {
namespace {

/// Returns whether features, which ascend, lie one after the other.
bool together(std::span<const std::uint32_t> features) {
  return features.back() - features.front() == features.size() - 1;
}

/// Converts rows of values that lie one after the other.
template <class Value>
void convert_row_major(const ValueRules& rules, const RowBlock& rows, std::size_t first, std::size_t count,
                       const ConvertedShape& shape, float* out) {
  const std::size_t row_bytes = rows.stride * sizeof(Value);
  const auto* row = static_cast<const std::byte*>(rows.data) + first * row_bytes;
  for (std::size_t r = 0; r < count; ++r, row += row_bytes, out += shape.width) {
    if (kIsFloat32<Value> || !rules.wide()) {
      for (std::size_t i = 0; i < shape.features; ++i) out[i] = to_float(value_at<Value>(row, i));
      continue;
    }
    for (std::size_t i = 0; i < shape.read.size(); i += kRoundedAtOnce) {
      const auto features =
          shape.read.subspan(i, std::min<std::size_t>(kRoundedAtOnce, shape.read.size() - i));
      if constexpr (std::is_same_v<Value, double>) {
        if (together(features))
          rules.round_run(features, reinterpret_cast<const double*>(row) + features.front(),
                          out + features.front());
        else
          rules.round_picked(features, reinterpret_cast<const double*>(row), out);
        continue;
      }
      double run[kRoundedAtOnce];
      float rounded[kRoundedAtOnce];
      for (std::size_t v = 0; v < features.size(); ++v) run[v] = to_double(value_at<Value>(row, features[v]));
      rules.round(features, run, rounded);
      for (std::size_t v = 0; v < features.size(); ++v) out[features[v]] = rounded[v];
    }
  }
}

/// Converts rows whose values lie apart, kRoundedAtOnce rows at a time, so that what is written stays in the caches
/// meanwhile.
template <class Value>
void convert_columns(const ValueRules& rules, const RowBlock& rows, std::size_t first, std::size_t count,
                     const ConvertedShape& shape, float* out) {
  for (std::size_t begin = 0; begin < count; begin += kRoundedAtOnce, out += kRoundedAtOnce * shape.width) {
    const std::size_t values = std::min<std::size_t>(kRoundedAtOnce, count - begin);
    for (const std::uint32_t feature : shape.read) {
      float run[kRoundedAtOnce];
      convert_run<Value>(rules, feature, rules.special(feature), rows.data,
                         (first + begin) * rows.stride + feature * rows.column_stride, rows.stride, values,
                         run);
      for (std::size_t r = 0; r < values; ++r) out[r * shape.width + feature] = run[r];
    }
  }
}

/// Writes the values of special features, which replace what convert_row_major wrote.
template <class Value>
void convert_specials(const ValueRules& rules, const RowBlock& rows, std::size_t first, std::size_t count,
                      const ConvertedShape& shape, float* out) {
  for (const ValueRules::Special& special : rules.specials())
    for (std::size_t r = 0; r < count; ++r) {
      const std::size_t i = (first + r) * rows.stride + special.feature * rows.column_stride;
      out[r * shape.width + special.feature] = rules.round(special, to_double(value_at<Value>(rows.data, i)));
    }
}

}  // namespace

void convert_rows(const ValueRules& rules, const RowBlock& rows, std::size_t first, std::size_t count,
                  const ConvertedShape& shape, float* out) {
  with_type(rows.type, [&](auto kind) {
    using Value = decltype(kind);
    if (rows.column_stride != 1) return convert_columns<Value>(rules, rows, first, count, shape, out);
    convert_row_major<Value>(rules, rows, first, count, shape, out);
    convert_specials<Value>(rules, rows, first, count, shape, out);
  });
}

Result<void> convert_rows(const ValueRules& rules, const ColumnSet& columns, const CategoryTexts* texts,
                          std::size_t first, std::size_t count, const ConvertedShape& shape, float* out) {
  for (std::size_t begin = 0; begin < count; begin += kColumnRows, out += kColumnRows * shape.width) {
    const std::size_t rows = std::min(kColumnRows, count - begin);
    for (const std::uint32_t feature : shape.read) {
      const Column column = columns.of(feature);
      float run[kColumnRows];
      if (!is_text(column))
        read_column(rules, column, feature, first + begin, rows, run);
      else
        FVM_TRY(read_texts(rules, *texts, column, feature, first + begin, rows, run));
      for (std::size_t r = 0; r < rows; ++r) out[r * shape.width + feature] = run[r];
    }
  }
  return {};
}

}  // namespace forestvm::host
