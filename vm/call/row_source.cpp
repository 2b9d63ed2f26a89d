// Reads the rows of a pass: see forestvm/internal/row_source.hpp.
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/row_source.hpp>

#include <cstring>
#include <string>
#include <variant>

#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/float_environment.hpp>

#include "vm/call/convert_rows.hpp"
#include "vm/call/csr_rows.hpp"
#include "vm/call/read_column.hpp"
#include "vm/call/row_value.hpp"

namespace forestvm {
namespace {

/// Checks that each value that `visit` goes through is a float64. visit(check) calls check(row, column,
/// number of the value) until it returns an error.
template <class Visit>
Result<void> check_exact(RowType type, const void* values, const Visit& visit) {
  return host::with_type(type, [&](auto kind) -> Result<void> {
    if constexpr (host::kIsFloat64<decltype(kind)>) {
      return {};
    } else {
      const FloatEnvironment environment;  // rounds to nearest, whatever the caller's mode is
      return visit([&](std::size_t row, std::size_t column, std::size_t i) -> Result<void> {
        const auto value = host::value_at<decltype(kind)>(values, i);
        if (host::is_exact(value)) return {};
        return not_exact(formatted("row {}, column {}", row, column), inexact_text(type, &value),
                         "pass the rows as float64");
      });
    }
  });
}

Result<void> check_exact(const RowBlock& rows, std::size_t begin, std::size_t count, std::size_t width) {
  return check_exact(rows.type, rows.data, [&](const auto& check) -> Result<void> {
    for (std::size_t row = begin; row < begin + count; ++row)
      for (std::size_t column = 0; column < width; ++column)
        FVM_TRY(check(row, column, row * rows.stride + column * rows.column_stride));
    return {};
  });
}

Result<void> check_exact(const CsrRows& rows, std::size_t begin, std::size_t count) {
  return check_exact(rows.type, rows.values, [&](const auto& check) -> Result<void> {
    for (std::size_t row = begin; row < begin + count; ++row)
      for (std::int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i)
        FVM_TRY(check(row, static_cast<std::size_t>(rows.columns[i]), static_cast<std::size_t>(i)));
    return {};
  });
}

ColumnSet columns_of(const ColumnRows& rows) { return {.columns = rows.columns.data()}; }

/// Returns the columns of a column-major matrix.
ColumnSet columns_of(const RowBlock& rows) {
  return {.first = {.values = rows.data, .type = rows.type},
          .column_bytes = rows.column_stride * bytes_of(rows.type)};
}

/// Implements RowSource::read for each form of rows.
class RowsRead {
 public:
  RowsRead(const RowReader& reader, RowForm form, std::size_t begin, std::size_t count, float* converted,
           bool looks_up)
      : reader_(reader),
        form_(form),
        begin_(begin),
        count_(count),
        converted_(converted),
        looks_up_(looks_up) {}

  Result<RowView> operator()(const RowBlock& rows) const {
    if (reader_.rules().wide()) FVM_TRY(check_exact(rows, begin_, count_, reader_.meta().num_features));
    if (converted_ == nullptr && form_ == RowForm::Columns) return in_place(columns_of(rows));
    if (converted_ == nullptr && form_ == RowForm::Doubles)
      return RowView{.doubles = static_cast<const double*>(rows.data) + begin_ * rows.stride,
                     .stride = rows.stride};
    if (converted_ == nullptr) return in_place(static_cast<const float*>(rows.data), rows.stride);
    const FloatEnvironment environment;  // rounds to nearest, whatever the caller's mode is
    const bool float64_runs = rows.type == RowType::Float64 && rows.column_stride == 1;
    host::convert_rows(reader_.rules(), rows, begin_, count_, shape(float64_runs), converted_);
    FVM_TRY(reader_.rules().columns().complete(rows, begin_, count_, converted_, looks_up_));
    return RowView{.values = converted_, .stride = width()};
  }

  Result<RowView> operator()(const CsrRows& rows) const {
    FVM_TRY(host::check_csr_rows(rows, begin_, count_, reader_.meta().num_features));
    if (reader_.rules().wide()) FVM_TRY(check_exact(rows, begin_, count_));
    if (converted_ == nullptr) {
      RowView view{.sparse = rows};
      view.sparse->offsets += begin_;
      return view;
    }
    const FloatEnvironment environment;
    host::fill_csr_rows(reader_.rules(), rows, begin_, count_, width(), converted_);
    FVM_TRY(reader_.rules().columns().complete(rows, begin_, count_, converted_, looks_up_));
    return RowView{.values = converted_, .stride = width()};
  }

  Result<RowView> operator()(const ColumnRows& rows) const {
    const ColumnSet columns = columns_of(rows);
    const auto check = [&](std::uint32_t feature) {
      return host::check_column(reader_.rules(), rows.columns[feature], feature, begin_, count_);
    };
    if (converted_ == nullptr) {
      for (const std::uint32_t feature : reader_.features_in_place()) FVM_TRY(check(feature));
      return in_place(columns);
    }
    for (std::uint32_t feature = 0; feature < reader_.meta().num_features; ++feature) FVM_TRY(check(feature));
    const FloatEnvironment environment;
    FVM_TRY(host::convert_rows(reader_.rules(), columns, rows.texts, begin_, count_, shape(), converted_));
    FVM_TRY(reader_.rules().columns().complete(rows, begin_, count_, converted_, looks_up_));
    return RowView{.values = converted_, .stride = width()};
  }

  Result<RowView> operator()(const CodedRows& rows) const {
    return RowView{.codes = rows.codes + code_offset(begin_, rows.columns)};
  }

  Result<RowView> operator()(const DeviceRows& rows) const { return in_place(rows.data, rows.stride); }

 private:
  std::size_t width() const {
    return looks_up_ ? row_width(reader_.meta()) : reader_.rules().columns().short_width();
  }
  host::ConvertedShape shape(bool float64_runs = false) const {
    return {reader_.meta().num_features, width(), reader_.features_converted(float64_runs)};
  }
  RowView in_place(const float* first, std::size_t stride) const {
    return {.values = first + begin_ * stride, .stride = stride};
  }
  RowView in_place(const ColumnSet& columns) const { return {.columns = ColumnView{columns, begin_}}; }

  const RowReader& reader_;
  RowForm form_;
  std::size_t begin_, count_;
  float* converted_;
  bool looks_up_;
};

}  // namespace

std::size_t RowSource::listed_values() const { return std::get<CsrRows>(*rows_).value_count; }

void* RowSource::stream() const { return std::get<DeviceRows>(*rows_).stream; }

std::uint32_t RowSource::plan_rows(std::uint32_t rows) const {
  return form_ == RowForm::Encoded ? reader_->coded_plans().plan_rows(rows) : rows;
}

Result<RowView> RowSource::read(std::size_t begin, std::size_t count, float* converted) const {
  return std::visit(RowsRead(*reader_, form_, begin, count, converted, true), *rows_);
}

Result<RowView> RowSource::read_short(std::size_t begin, std::size_t count, float* converted) const {
  return std::visit(RowsRead(*reader_, form_, begin, count, converted, false), *rows_);
}

void RowSource::copy_codes(std::size_t begin, std::size_t count, std::uint8_t* out) const {
  const auto& rows = std::get<CodedRows>(*rows_);
  const std::size_t block_bytes = reader_->coded_plans().code_columns() * kCodeRows;
  if (rows.columns * kCodeRows == block_bytes) {
    std::memcpy(out, rows.codes + code_offset(begin, rows.columns), code_bytes(count, rows.columns));
    return;
  }
  for (std::size_t row = 0; row < count; row += kCodeRows, out += block_bytes)
    std::memcpy(out, rows.codes + code_offset(begin + row, rows.columns), block_bytes);
}

}  // namespace forestvm
