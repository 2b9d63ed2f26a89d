// Columns of all types, with offsets, missing values and dictionaries, and the equal float32 rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <forestvm/forestvm.h>
#include <forestvm/backend.hpp>

#include "typed_rows.hpp"

namespace forestvm::test {

/// Offsets of columns. Only the first is a multiple of 8.
inline constexpr std::size_t kColumnOffsets[] = {0, 1, 7, 13, 67, 129};

/// A column in memory that ends with its last value.
class MixedColumn {
 public:
  MixedColumn(fvm_type type, std::size_t rows, std::size_t offset, bool nulls, bool dictionary,
              std::uint32_t seed)
      : type_(type), offset_(offset), random_(seed) {
    if (nulls) validity_.assign((offset + rows + 7) / 8, 0);
    const std::size_t all = offset + rows;
    if (type == FVM_TYPE_BIT)
      draw_bits(all);
    else
      draw_values(all, dictionary && is_integer());
    if (nulls)
      for (std::size_t i = 0; i < all; ++i) draw_validity(i);
    floats_.erase(floats_.begin(), floats_.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  fvm_column column() const {
    fvm_column column = FVM_COLUMN(memory_.data() + misalignment(), type_);
    column.offset = offset_;
    if (!validity_.empty()) column.validity = validity_.data();
    if (categories_.empty()) return column;
    column.categories = categories_.data();
    column.category_count = categories_.size();
    return column;
  }
  float as_float(std::size_t row) const { return floats_[row]; }

 private:
  bool is_integer() const { return type_ >= FVM_TYPE_INT8 && type_ <= FVM_TYPE_UINT64; }
  std::size_t misalignment() const { return offset_ % 3; }

  void draw_bits(std::size_t all) {
    memory_.assign(misalignment() + (all + 7) / 8, std::byte{0});
    for (std::size_t i = 0; i < all; ++i) {
      const bool bit = random_() % 2 == 0;
      if (bit) memory_[misalignment() + i / 8] |= std::byte{1} << (i % 8);
      floats_.push_back(bit ? 1.0f : 0.0f);
    }
  }

  void draw_values(std::size_t all, bool dictionary) {
    std::vector<TypedValue> values = values_of(type_);
    if (dictionary) values = indices();
    memory_.assign(misalignment(), std::byte{0x77});
    for (std::size_t i = 0; i < all; ++i) {
      const TypedValue& value = values[random_() % values.size()];
      memory_.insert(memory_.end(), value.bytes.begin(), value.bytes.end());
      floats_.push_back(value.number);
    }
    memory_.shrink_to_fit();
  }

  /// Returns the indices of a dictionary as values, with the numbers for which they stand. Signed types have -1 too.
  std::vector<TypedValue> indices() {
    categories_ = {0.5, -1.25, std::numeric_limits<double>::quiet_NaN(), 2};
    std::vector<TypedValue> values;
    for (std::size_t i = 0; i < categories_.size(); ++i)
      values.push_back(index(i, static_cast<float>(categories_[i])));
    const bool is_signed = type_ >= FVM_TYPE_INT8 && type_ <= FVM_TYPE_INT64;
    if (is_signed) values.push_back(index(~std::size_t{0}, std::numeric_limits<float>::quiet_NaN()));
    return values;
  }

  /// Returns an index, cut to the lowest bytes that its type has.
  TypedValue index(std::size_t i, float number) const {
    TypedValue value = typed_value(i, number);
    value.bytes.resize(values_of(type_)[0].bytes.size());
    return value;
  }

  void draw_validity(std::size_t i) {
    if (random_() % 4 != 0)
      validity_[i / 8] |= static_cast<std::uint8_t>(1u << (i % 8));
    else
      floats_[i] = std::numeric_limits<float>::quiet_NaN();
  }

  fvm_type type_;
  std::size_t offset_;
  std::mt19937 random_;
  std::vector<std::byte> memory_;
  std::vector<std::uint8_t> validity_;
  std::vector<double> categories_;
  std::vector<float> floats_;
};

/// Columns of all types, one after the other from type number `first` on.
class MixedColumns {
 public:
  MixedColumns(std::size_t rows, std::uint32_t features, std::uint32_t first) : rows_(rows) {
    for (std::uint32_t f = 0; f < features; ++f) {
      const std::uint32_t n = first + f;
      columns_.emplace_back(static_cast<fvm_type>(n % (FVM_TYPE_BIT + 1)), rows,
                            kColumnOffsets[n % std::size(kColumnOffsets)], n % 2 == 1, n % 5 < 2, n + 1);
      described_.push_back(columns_.back().column());
    }
    for (std::size_t row = 0; row < rows; ++row)
      for (const MixedColumn& column : columns_) floats_.push_back(column.as_float(row));
  }

  fvm_rows rows() const { return FVM_COLUMN_ROWS(described_.data(), rows_, described_.size()); }
  RowBlock as_floats() const { return {floats_.data(), rows_, columns_.size()}; }
  std::vector<fvm_column>& described() { return described_; }

 private:
  std::size_t rows_;
  std::vector<MixedColumn> columns_;
  std::vector<fvm_column> described_;
  std::vector<float> floats_;
};

}  // namespace forestvm::test
