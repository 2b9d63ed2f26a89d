// See column_parts.hpp.
#include "bindings/python/core/column_parts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/formatted.hpp>

namespace forestvm::python {
namespace {

constexpr std::size_t kWord = 64;  // rows whose values are compared at once

bool bit_at(const std::uint8_t* bits, std::size_t at) { return (bits[at / 8] >> at % 8 & 1) != 0; }

}  // namespace

ColumnRows part_of(const ColumnRows& rows, std::size_t begin, std::size_t count,
                   std::vector<Column>& memory) {
  memory.assign(rows.columns.begin(), rows.columns.end());
  for (Column& column : memory) column.offset += begin;
  ColumnRows part = rows;
  part.count = count;
  part.columns = memory;
  return part;
}

Result<ColumnRows> MissingNumber::mark(const ColumnRows& rows, std::size_t begin) {
  constexpr std::size_t kBits = std::size_t{64} << 20;
  const std::size_t most =
      std::max(kBits / std::max<std::size_t>(rows.columns.size(), 1) / kWord * kWord, kWord);
  ColumnRows marked = part_of(rows, begin, std::min(most, rows.count - begin), columns_);
  bits_.resize(std::max(bits_.size(), columns_.size()));
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    if (column.form == ColumnForm::Indices && may_be_category(column))
      return refused(
          "missing",
          "the number may be the code of a category in column {}: the frame's codes are not the model's", i);
    if (column.values != nullptr && (column.form == ColumnForm::Numbers || column.form == ColumnForm::Bits))
      mark_column(marked.count, column, bits_[i]);
  }
  return marked;
}

bool MissingNumber::may_be_category(const Column& column) const {
  const bool is_code =
      number_ >= 0 && number_ < static_cast<double>(column.category_count) && number_ == std::floor(number_);
  const double* const end = column.categories + column.category_count;
  return is_code || std::find(column.categories, end, number_) != end;
}

void MissingNumber::mark_column(std::size_t count, Column& column, std::vector<std::uint8_t>& bits) const {
  const bool is_bits = column.form == ColumnForm::Bits;
  const auto* const values = static_cast<const std::byte*>(column.values);
  // Values and validity bits have one offset: for bits it is kept, numbers are counted from the first one.
  const std::size_t first = is_bits ? column.offset % 8 : 0;
  const std::size_t size = is_bits ? 0 : bytes_of(column.type);
  bits.assign((first + count) / 8 + 2 * sizeof(std::uint64_t), 0);
  for (std::size_t row = 0; row < count; row += kWord) {
    const std::size_t here = std::min(kWord, count - row);
    std::uint64_t missing = is_bits ? 0 : equal(column.type, values + (column.offset + row) * size, here);
    for (std::size_t i = 0; i < here; ++i) {
      const std::size_t at = column.offset + row + i;
      bool is_missing = (missing >> i & 1) != 0;
      if (is_bits)
        is_missing = number_ == (bit_at(static_cast<const std::uint8_t*>(column.values), at) ? 1 : 0);
      const bool present = !is_missing && (column.validity == nullptr || bit_at(column.validity, at));
      bits[(first + row + i) / 8] |= static_cast<std::uint8_t>(present ? 1 << (first + row + i) % 8 : 0);
    }
  }
  column.values = values + (is_bits ? column.offset / 8 : column.offset * size);
  column.offset = first;
  column.validity = bits.data();
}

std::uint64_t MissingNumber::equal(RowType type, const std::byte* values, std::size_t count) const {
  std::array<double, kWord> aligned, wide;
  std::array<float, kWord> narrow;
  std::memcpy(aligned.data(), values, count * bytes_of(type));
  std::uint64_t found = 0;
  if (row_type_ == ScalarType::Float64) {
    to_float64(type, aligned.data(), count, wide.data());
    for (std::size_t i = 0; i < count; ++i) found |= std::uint64_t{wide[i] == number_} << i;
  } else {
    to_float32(type, aligned.data(), count, narrow.data());
    const auto number = static_cast<float>(number_);
    for (std::size_t i = 0; i < count; ++i) found |= std::uint64_t{narrow[i] == number} << i;
  }
  return found;
}

}  // namespace forestvm::python
