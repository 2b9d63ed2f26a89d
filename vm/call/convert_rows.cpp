// See convert_rows.hpp.
#include "vm/call/convert_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "vm/call/row_value.hpp"

namespace forestvm::host {
namespace {

/// The number of rows that are transposed together, so that what is written stays in the caches meanwhile.
constexpr std::size_t kRowsAtOnce = 64;

template <class Value>
void convert(const RowBlock& rows, std::size_t first, std::size_t count, std::size_t width, float* out) {
  const auto* row = static_cast<const std::byte*>(rows.data) + first * rows.stride * sizeof(Value);
  const std::size_t row_bytes = rows.stride * sizeof(Value);
  if (rows.column_stride == 1) {
    for (std::size_t r = 0; r < count; ++r, row += row_bytes)
      for (std::size_t i = 0; i < width; ++i) *out++ = to_float(value_at<Value>(row, i));
    return;
  }
  for (std::size_t left = count; left != 0;) {
    const std::size_t now = std::min(kRowsAtOnce, left);
    for (std::size_t i = 0; i < width; ++i)
      for (std::size_t r = 0; r < now; ++r)
        out[r * width + i] = to_float(value_at<Value>(row, r * rows.stride + i * rows.column_stride));
    out += now * width;
    left -= now;
    if (left != 0) row += now * row_bytes;
  }
}

}  // namespace

void convert_rows(const RowBlock& rows, std::size_t first, std::size_t count, std::size_t width, float* out) {
  with_type(rows.type, [&](auto value) { convert<decltype(value)>(rows, first, count, width, out); });
}

void mark_zeros_missing(std::span<const std::uint32_t> features, std::size_t count, std::size_t width,
                        float* rows) {
  for (float* const end = rows + count * width; rows != end; rows += width)
    for (const std::uint32_t feature : features)
      if (std::abs(rows[feature]) <= static_cast<float>(kTiny))
        rows[feature] = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace forestvm::host
