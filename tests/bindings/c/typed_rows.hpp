// Rows of any type and arrangement that the C ABI accepts, and the equal float32 rows, which the tests know
// without a conversion.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <forestvm/forestvm.h>
#include <forestvm/backend.hpp>

namespace forestvm::test {

/// A value of a type, as bytes, and the equal float32.
struct TypedValue {
  std::vector<std::byte> bytes;
  float number;
};

template <class Value>
TypedValue typed_value(Value value, float number) {
  TypedValue typed{std::vector<std::byte>(sizeof value), number};
  std::memcpy(typed.bytes.data(), &value, sizeof value);
  return typed;
}

/// Returns the integers -3 to 3 and the ends of the type, as far as the type and float32 can represent them.
template <class Integer>
std::vector<TypedValue> integers() {
  using Limits = std::numeric_limits<Integer>;
  std::vector<TypedValue> values;
  for (int i = Limits::is_signed ? -3 : 0; i <= 3; ++i)
    values.push_back(typed_value(static_cast<Integer>(i), static_cast<float>(i)));
  values.push_back(typed_value(Limits::min(), Limits::is_signed ? -std::ldexp(1.0f, Limits::digits) : 0.0f));
  const Integer power = Integer{1} << (Limits::digits - 1);  // the largest power of two
  values.push_back(typed_value(power, std::ldexp(1.0f, Limits::digits - 1)));
  return values;
}

template <class Float>
std::vector<TypedValue> floats() {
  std::vector<TypedValue> values;
  for (const float number :
       {0.0f, -0.0f, 0.5f, -0.5f, 1.0f, -1.25f, 0.1f, std::numeric_limits<float>::denorm_min(),
        std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    values.push_back(typed_value(static_cast<Float>(number), number));
  return values;
}

/// Returns values of each fvm_type. All of them are float32 numbers.
inline std::vector<TypedValue> values_of(fvm_type type) {
  const auto half = [](std::uint16_t bits, float number) { return typed_value(bits, number); };
  const auto boolean = [](std::uint8_t byte) { return typed_value(byte, byte != 0 ? 1.0f : 0.0f); };
  switch (type) {
    case FVM_TYPE_FLOAT32:
      return floats<float>();
    case FVM_TYPE_FLOAT64:
      return floats<double>();
    case FVM_TYPE_FLOAT16:
      return {half(0x0000, 0.0f),
              half(0x8000, -0.0f),
              half(0x3800, 0.5f),
              half(0xbd00, -1.25f),
              half(0x3c00, 1.0f),
              half(0x0001, 0x1p-24f),
              half(0x7bff, 65504.0f),
              half(0x7c00, std::numeric_limits<float>::infinity()),
              half(0x7e00, std::numeric_limits<float>::quiet_NaN())};
    case FVM_TYPE_INT8:
      return integers<std::int8_t>();
    case FVM_TYPE_INT16:
      return integers<std::int16_t>();
    case FVM_TYPE_INT32:
      return integers<std::int32_t>();
    case FVM_TYPE_INT64:
      return integers<std::int64_t>();
    case FVM_TYPE_UINT8:
      return integers<std::uint8_t>();
    case FVM_TYPE_UINT16:
      return integers<std::uint16_t>();
    case FVM_TYPE_UINT32:
      return integers<std::uint32_t>();
    case FVM_TYPE_UINT64:
      return integers<std::uint64_t>();
    default:
      return {boolean(0), boolean(1), boolean(2), boolean(255)};
  }
}

/// The arrangements of values in memory.
enum class Storage { RowMajor, PaddedRows, ColumnMajor, PaddedColumns, BothApart, Sparse };
inline constexpr Storage kStorages[] = {Storage::RowMajor,      Storage::PaddedRows, Storage::ColumnMajor,
                                        Storage::PaddedColumns, Storage::BothApart,  Storage::Sparse};

class StoredRows {
 public:
  /// Draws rows from the type's values. The memory begins `misalignment` bytes after an aligned address and
  /// ends with the last value.
  StoredRows(fvm_type type, Storage storage, std::size_t rows, std::size_t columns,
             std::size_t misalignment = 0) {
    const std::vector<TypedValue> values = values_of(type);
    std::mt19937 random(static_cast<std::uint32_t>(rows + columns));
    const auto [row_stride, column_stride] = strides(storage, rows, columns);
    const std::size_t value_bytes = values[0].bytes.size();
    const std::size_t count = rows == 0 ? 0 : (rows - 1) * row_stride + (columns - 1) * column_stride + 1;
    memory_.assign(misalignment + count * value_bytes, std::byte{0x77});
    offsets_.push_back(0);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        const TypedValue& value = values[random() % values.size()];
        std::memcpy(memory_.data() + misalignment + (row * row_stride + column * column_stride) * value_bytes,
                    value.bytes.data(), value_bytes);
        floats_.push_back(value.number);
        columns_.push_back(static_cast<std::int32_t>(column));
      }
      offsets_.push_back(static_cast<std::int64_t>(columns_.size()));
    }
    floats_width_ = columns;
    const void* const data = memory_.data() + misalignment;
    switch (storage) {
      case Storage::RowMajor:
        rows_ = FVM_DENSE_ROWS(data, type, rows, columns);
        break;
      case Storage::ColumnMajor:
        rows_ = FVM_COLUMN_MAJOR_ROWS(data, type, rows, columns);
        break;
      case Storage::Sparse:
        rows_ = FVM_CSR_ROWS(offsets_.data(), columns_.data(), data, type, rows, columns_.size());
        break;
      default:
        rows_ = FVM_DENSE_ROWS(data, type, rows, columns);
        rows_.row_stride = static_cast<std::ptrdiff_t>(row_stride);
        rows_.column_stride = static_cast<std::ptrdiff_t>(column_stride);
    }
  }
  StoredRows(const StoredRows&) = delete;
  StoredRows& operator=(const StoredRows&) = delete;

  const fvm_rows& rows() const { return rows_; }
  RowBlock as_floats() const { return {floats_.data(), rows_.row_count, floats_width_}; }

 private:
  struct Strides {
    std::size_t row, column;
  };
  static Strides strides(Storage storage, std::size_t rows, std::size_t columns) {
    switch (storage) {
      case Storage::PaddedRows:
        return {columns + 3, 1};
      case Storage::ColumnMajor:
        return {1, rows};
      case Storage::PaddedColumns:
        return {1, rows + 5};
      case Storage::BothApart:
        return {2 * columns + 1, 2};
      default:
        return {columns, 1};
    }
  }

  std::vector<std::byte> memory_;
  std::vector<float> floats_;
  std::size_t floats_width_ = 0;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int32_t> columns_;
  fvm_rows rows_ = FVM_ROWS_INIT;
};

}  // namespace forestvm::test
