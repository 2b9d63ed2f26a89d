// Parts of rows in columns, and rows in columns among whose numbers one stands for a missing value.
#pragma once

#include "bindings/python/core/python.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <forestvm/backend.hpp>

namespace forestvm::python {

/// Returns the rows [begin, begin + count). They refer to `memory`.
ColumnRows part_of(const ColumnRows& rows, std::size_t begin, std::size_t count, std::vector<Column>& memory);

/// Marks the values that equal a number as missing, in validity bits: the values stay where they lie.
class MissingNumber {
 public:
  /// Values are compared as the program compares them, as float32 or as float64.
  MissingNumber(double number, ScalarType row_type) : number_(number), row_type_(row_type) {}

  /// Returns the rows from `begin` on, or only as many of them as have validity bits of 8 MiB, with other validity
  /// bits. They refer to this object until the next call. Refused for a column of categories, if the number could be a
  /// code of one: trainers compare it with the codes that the frame happens to use.
  Result<ColumnRows> mark(const ColumnRows& rows, std::size_t begin);

 private:
  void mark_column(std::size_t count, Column& column, std::vector<std::uint8_t>& bits) const;
  std::uint64_t equal(RowType type, const std::byte* values, std::size_t count) const;
  bool may_be_category(const Column& column) const;

  double number_;
  ScalarType row_type_;
  std::vector<Column> columns_;
  std::vector<std::vector<std::uint8_t>> bits_;
};

}  // namespace forestvm::python
