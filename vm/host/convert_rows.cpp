// See convert_rows.hpp.
#include "vm/host/convert_rows.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace forestvm::host {
namespace {

struct Half {
  std::uint16_t bits;
};

float to_float(float value) { return value; }
float to_float(double value) { return static_cast<float>(value); }

/// Every binary16 is a float32: its exponent moves, and a subnormal is multiplied up.
float to_float(Half half) {
  const std::uint32_t sign = std::uint32_t{half.bits & 0x8000u} << 16, rest = half.bits & 0x7fffu;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest < 0x0400) {
    const float size = static_cast<float>(rest) * 0x1p-24f;
    return sign != 0 ? -size : size;
  }
  return std::bit_cast<float>(sign | ((rest << 13) + (std::uint32_t{127 - 15} << 23)));
}

template <class Value>
void convert(const RowBlock& rows, std::size_t first, std::size_t count, std::size_t width, float* out) {
  const Value* row = static_cast<const Value*>(rows.data) + first * rows.stride;
  for (std::size_t r = 0; r < count; ++r, row += rows.stride)
    for (std::size_t i = 0; i < width; ++i) *out++ = to_float(row[i]);
}

}  // namespace

void convert_rows(const RowBlock& rows, std::size_t first, std::size_t count, std::size_t width, float* out) {
  switch (rows.type) {
    case RowType::Float32:
      return convert<float>(rows, first, count, width, out);
    case RowType::Float64:
      return convert<double>(rows, first, count, width, out);
    case RowType::Float16:
      return convert<Half>(rows, first, count, width, out);
  }
}

void mark_zeros_missing(std::span<const std::uint32_t> features, std::size_t count, std::size_t width,
                        float* rows) {
  for (float* const end = rows + count * width; rows != end; rows += width)
    for (const std::uint32_t feature : features)
      if (std::abs(rows[feature]) <= static_cast<float>(kTiny))
        rows[feature] = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace forestvm::host
