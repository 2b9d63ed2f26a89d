// See forestvm/internal/row_source.hpp.
#include <forestvm/internal/row_source.hpp>

#include <string>
#include <utility>
#include <variant>

#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/float_environment.hpp>

#include "vm/call/convert_rows.hpp"
#include "vm/call/csr_rows.hpp"
#include "vm/call/row_value.hpp"

namespace forestvm {
namespace {

Error usage(std::string message) { return {ErrorCode::Usage, "", std::move(message)}; }

/// Sets `numbers` to how many numbers lie from the first to the last of `count` that are `stride` apart, both
/// included. Returns whether they are too many for a size.
bool span(std::size_t count, std::size_t stride, std::size_t& numbers) {
  if (count == 0) return false;
  return __builtin_mul_overflow(count - 1, stride, &numbers) || __builtin_add_overflow(numbers, 1, &numbers);
}

/// Checks that rows are as long as the model needs, do not overlap, and end inside the address space.
Result<void> check_extent(const RowBlock& rows, std::uint32_t num_features) {
  if (rows.count == 0) return {};
  if (rows.column_stride == 1 && rows.stride < num_features)
    return usage("rows of " + std::to_string(rows.stride) + " values for a model of " +
                 std::to_string(num_features) + " features");
  std::size_t row_span = 0, column_span = 0, values = 0;
  const bool too_many = span(num_features, rows.column_stride, row_span) ||
                        span(rows.count, rows.stride, column_span) ||
                        __builtin_add_overflow(row_span, column_span, &values) ||
                        values > static_cast<std::size_t>(PTRDIFF_MAX) / bytes_of(rows.type);
  if (too_many)
    return usage(std::to_string(rows.count) + " rows, " + std::to_string(rows.stride) +
                 " numbers apart, are more than memory holds");
  const bool apart = rows.stride >= row_span || rows.column_stride >= column_span;
  const bool repeated = rows.stride == 0 || rows.column_stride == 0;
  if (num_features != 0 && (repeated || !apart))
    return usage("rows " + std::to_string(rows.stride) + " numbers apart overlap, if their columns are " +
                 std::to_string(rows.column_stride) + " apart");
  return rows.data == nullptr ? no_buffer() : Result<void>();
}

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
        return not_exact("row " + std::to_string(row) + ", column " + std::to_string(column),
                         inexact_text(type, &value), "pass the rows as float64");
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

/// Reads rows of RowSource::read.
class RowsRead {
 public:
  RowsRead(const RowReader& reader, std::size_t begin, std::size_t count, float* converted)
      : reader_(reader), begin_(begin), count_(count), converted_(converted) {}

  Result<RowView> operator()(const RowBlock& rows) const {
    if (reader_.rules().wide()) FVM_TRY(check_exact(rows, begin_, count_, width()));
    if (converted_ == nullptr) return in_place(static_cast<const float*>(rows.data), rows.stride);
    const FloatEnvironment environment;  // rounds to nearest, whatever the caller's mode is
    host::convert_rows(reader_.rules(), rows, begin_, count_, width(), converted_);
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
    return RowView{.values = converted_, .stride = width()};
  }

  Result<RowView> operator()(const CodedRows& rows) const {
    return RowView{.codes = rows.codes + code_offset(begin_, rows.columns)};
  }

  Result<RowView> operator()(const DeviceRows& rows) const { return in_place(rows.data, rows.stride); }

 private:
  std::size_t width() const { return reader_.meta().num_features; }
  RowView in_place(const float* first, std::size_t stride) const {
    return {.values = first + begin_ * stride, .stride = stride};
  }

  const RowReader& reader_;
  std::size_t begin_, count_;
  float* converted_;
};

}  // namespace

Error no_buffer() { return usage("no buffer for rows or output"); }

std::size_t RowSource::listed_values() const { return std::get<CsrRows>(*rows_).value_count; }

void* RowSource::stream() const { return std::get<DeviceRows>(*rows_).stream; }

std::uint32_t RowSource::plan_rows(std::uint32_t rows) const {
  return form_ == RowForm::Encoded ? reader_->coded_plans().plan_rows(rows) : rows;
}

Result<RowView> RowSource::read(std::size_t begin, std::size_t count, float* converted) const {
  return std::visit(RowsRead(*reader_, begin, count, converted), *rows_);
}

RowReader::RowReader(const Program& program, RoundFunction round, std::optional<int> device)
    : meta_(program.meta()), rules_(program, round), coded_plans_(program), device_(device) {}

Result<RowSource> RowReader::resolve(const AnyRows& rows) const {
  FVM_ASSIGN(const RowForm form, std::visit([&](const auto& given) { return form_of(given); }, rows));
  return RowSource(*this, rows, form);
}

Result<RowSource> RowReader::resolve_to_encode(const AnyRows& rows, std::size_t room) const {
  if (std::holds_alternative<CodedRows>(rows)) return usage("the rows are encoded already");
  FVM_TRY(coded_plans_.check());
  FVM_TRY(coded_plans_.check_room(row_count(rows), room));
  return resolve(rows);
}

Result<RowForm> RowReader::form_of(const RowBlock& rows) const {
  FVM_TRY(check_extent(rows, meta_.num_features));
  const bool plain = rows.type == RowType::Float32 && rows.column_stride == 1 && !rules_.change_float32();
  return plain ? RowForm::Plain : RowForm::Dense;
}

Result<RowForm> RowReader::form_of(const CsrRows& rows) const {
  const bool no_values = rows.value_count != 0 && (rows.columns == nullptr || rows.values == nullptr);
  if (rows.count != 0 && (rows.offsets == nullptr || no_values)) return no_buffer();
  return RowForm::Sparse;
}

Result<RowForm> RowReader::form_of(const CodedRows& rows) const {
  FVM_TRY(coded_plans_.check(rows));
  return RowForm::Encoded;
}

Result<RowForm> RowReader::form_of(const DeviceRows& rows) const {
  if (!device_)
    return usage(
        "the rows lie in a GPU's memory, which the host does not read: load the program into the GPU");
  if (rows.device != *device_)
    return usage("the rows are on device " + std::to_string(rows.device) + ", the program is on device " +
                 std::to_string(*device_));
  if (rules_.change_float32())
    return refused(
        "rows",
        "lie on the device, and this model's zeros are missing values or its thresholds closer than "
        "float32 numbers, which the host sees to: pass rows of the host");
  FVM_TRY(check_extent({rows.data, rows.count, rows.stride}, meta_.num_features));
  return RowForm::OnDevice;
}

}  // namespace forestvm
