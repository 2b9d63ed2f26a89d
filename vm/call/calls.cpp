// See forestvm/calls.hpp.
#include <forestvm/internal/calls.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include <forestvm/internal/float_environment.hpp>

#include "vm/call/convert_rows.hpp"
#include "vm/call/csr_rows.hpp"
#include "vm/call/row_value.hpp"

namespace forestvm {
namespace {

Error usage(std::string message) { return {ErrorCode::Usage, "", std::move(message)}; }

Result<void> check_score_output(OutputKind output) {
  if (output == OutputKind::Raw || output == OutputKind::Value) return {};
  return usage(
      "predict gives raw scores or values; labels come from predict_class, leaf numbers from predict_leaf");
}

/// Checks that the program has such an output, and that numbers of this type hold it.
Result<void> check_result(const Program& program, OutputKind output, ResultType type) {
  const bool integers = type == ResultType::Int32 || type == ResultType::Int64;
  switch (output) {
    case OutputKind::Raw:
    case OutputKind::Value:
      if (!integers) return {};
      return usage("raw scores and values are float32 or float64: integers would lose their fractions");
    case OutputKind::Class:
    case OutputKind::Leaf:
      if (!integers) return usage("labels and leaf numbers are int32 or int64: floats would lose digits");
      if (output == OutputKind::Leaf || output_width(program.meta(), output) != 0) return {};
      return refused("output class", "the model has no classes: its objective is " +
                                         std::string(program.text(StringId::Objective)));
  }
  return usage("there is no output " + std::to_string(static_cast<int>(output)));
}

/// Sets `numbers` to how many numbers lie from the first to the last of `count` that are `stride` apart, both
/// included. Returns whether they are too many for a size.
bool span(std::size_t count, std::size_t stride, std::size_t& numbers) {
  if (count == 0) return false;
  return __builtin_mul_overflow(count - 1, stride, &numbers) || __builtin_add_overflow(numbers, 1, &numbers);
}

/// Returns the text of a value that no float64 is equal to.
template <class Value>
std::string text_of(Value value) {
  if constexpr (std::is_arithmetic_v<Value>) {
    std::array<char, 32> text;
    return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
  } else {
    return "";  // each value of such a type is a float64
  }
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
        return not_exact("row " + std::to_string(row) + ", column " + std::to_string(column), text_of(value),
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

}  // namespace

Destination Destination::from(std::size_t element) const {
  return {type, out == nullptr ? nullptr : static_cast<std::byte*>(out) + element * bytes_of(type)};
}

std::size_t bytes_of(ResultType type) {
  return type == ResultType::Float64 || type == ResultType::Int64 ? 8 : 4;
}

ResultType written_type(OutputKind output, ResultType type) {
  if (output == OutputKind::Class) return ResultType::Int64;
  return output == OutputKind::Leaf ? ResultType::Int32 : type;
}

void deliver(OutputKind output, const void* written, std::size_t count, const Destination& to) {
  if (count == 0) return;
  if (written_type(output, to.type) == to.type)
    std::memcpy(to.out, written, count * bytes_of(to.type));
  else if (to.type == ResultType::Int32)
    std::transform(static_cast<const std::int64_t*>(written),
                   static_cast<const std::int64_t*>(written) + count, to.leaves(),
                   [](std::int64_t label) { return static_cast<std::int32_t>(label); });
  else
    std::copy_n(static_cast<const std::int32_t*>(written), count, to.labels());
}

Result<void> CallPredictor::predict_as(Context& context, const AnyRows& rows, OutputKind output,
                                       ResultType type, void* out) const {
  FVM_TRY(check_result(program(), output, type));
  return run(context, rows, output, {type, out});
}

Result<void> Predictor::predict(Context& context, const AnyRows& rows, OutputKind output, float* out) const {
  FVM_TRY(check_score_output(output));
  return predict_as(context, rows, output, ResultType::Float32, out);
}

Result<void> Predictor::predict_wide(Context& context, const AnyRows& rows, OutputKind output,
                                     double* out) const {
  FVM_TRY(check_score_output(output));
  return predict_as(context, rows, output, ResultType::Float64, out);
}

Result<void> Predictor::predict_class(Context& context, const AnyRows& rows, std::int64_t* out) const {
  return predict_as(context, rows, OutputKind::Class, ResultType::Int64, out);
}

Result<void> Predictor::predict_leaf(Context& context, const AnyRows& rows, std::int32_t* out) const {
  return predict_as(context, rows, OutputKind::Leaf, ResultType::Int32, out);
}

Error no_buffer() { return usage("no buffer for rows or output"); }

std::size_t bytes_of(RowType type) {
  return host::with_type(type, [](auto value) { return sizeof(value); });
}

bool is_float32(RowType type) {
  return host::with_type(type, [](auto value) { return host::kIsFloat32<decltype(value)>; });
}

void to_float32(RowType type, const void* values, std::size_t count, float* out) {
  host::convert_rows({}, {values, 1, count, type}, 0, 1, {count, count}, out);
}

void to_float64(RowType type, const void* values, std::size_t count, double* out) {
  host::with_type(type, [&](auto kind) {
    for (std::size_t i = 0; i < count; ++i)
      out[i] = host::to_double(host::value_at<decltype(kind)>(values, i));
  });
}

std::size_t first_inexact(RowType type, const void* values, std::size_t count) {
  return host::with_type(type, [&](auto kind) {
    std::size_t i = 0;
    while (i < count && host::is_exact(host::value_at<decltype(kind)>(values, i))) ++i;
    return i;
  });
}

std::string inexact_text(RowType type, const void* value) {
  return host::with_type(type, [&](auto kind) { return text_of(host::value_at<decltype(kind)>(value, 0)); });
}

Error not_exact(std::string place, const std::string& number, const std::string& instead) {
  return refused(std::move(place),
                 number +
                     " is no float64 number, and rounded it could go another way in this model, which "
                     "compares in float64; if rounding is meant, " +
                     instead);
}

Result<void> check_rows(const ProgramMeta& meta, const RowBlock& rows) {
  if (rows.count == 0) return {};
  if (rows.column_stride == 1 && rows.stride < meta.num_features)
    return usage("rows of " + std::to_string(rows.stride) + " values for a model of " +
                 std::to_string(meta.num_features) + " features");
  std::size_t row_span = 0, column_span = 0, values = 0;
  const bool too_many = span(meta.num_features, rows.column_stride, row_span) ||
                        span(rows.count, rows.stride, column_span) ||
                        __builtin_add_overflow(row_span, column_span, &values) ||
                        values > static_cast<std::size_t>(PTRDIFF_MAX) / bytes_of(rows.type);
  if (too_many)
    return usage(std::to_string(rows.count) + " rows, " + std::to_string(rows.stride) +
                 " numbers apart, are more than memory holds");
  const bool apart = rows.stride >= row_span || rows.column_stride >= column_span;
  const bool repeated = rows.stride == 0 || rows.column_stride == 0;
  if (meta.num_features != 0 && (repeated || !apart))
    return usage("rows " + std::to_string(rows.stride) + " numbers apart overlap, if their columns are " +
                 std::to_string(rows.column_stride) + " apart");
  return rows.data == nullptr ? no_buffer() : Result<void>();
}

Result<void> check_rows(const CsrRows& rows) {
  if (rows.count == 0) return {};
  const bool no_values = rows.value_count != 0 && (rows.columns == nullptr || rows.values == nullptr);
  return rows.offsets == nullptr || no_values ? no_buffer() : Result<void>();
}

Result<void> check_rows(const ProgramMeta& meta, const DeviceRows& rows) {
  return check_rows(meta, RowBlock{rows.data, rows.count, rows.stride});
}

Result<void> check_row_values(const ProgramMeta& meta, const AnyRows& rows, std::size_t begin,
                              std::size_t count) {
  const bool exact = meta.row_type == ScalarType::Float64;
  if (const auto* csr = std::get_if<CsrRows>(&rows)) {
    FVM_TRY(host::check_csr_rows(*csr, begin, count, meta.num_features));
    if (exact) return check_exact(*csr, begin, count);
  } else if (const auto* dense = std::get_if<RowBlock>(&rows)) {
    if (exact) return check_exact(*dense, begin, count, meta.num_features);
  }
  return {};
}

bool are_float_rows(const ValueRules& rules, const RowBlock& rows) {
  return rows.type == RowType::Float32 && rows.column_stride == 1 && !rules.change_float32();
}

Result<void> fill_float_rows(const ValueRules& rules, const ProgramMeta& meta, const AnyRows& rows,
                             std::size_t begin, std::size_t count, float* out) {
  const FloatEnvironment environment;  // rounds to nearest, whatever the caller's mode is
  if (const auto* csr = std::get_if<CsrRows>(&rows)) {
    host::fill_csr_rows(rules, *csr, begin, count, row_width(meta), out);
    return rules.columns().complete(*csr, begin, count, out);
  }
  const auto& dense = std::get<RowBlock>(rows);
  host::convert_rows(rules, dense, begin, count, {meta.num_features, row_width(meta)}, out);
  return rules.columns().complete(dense, begin, count, out);
}

std::size_t coded_bytes(std::size_t rows, std::size_t columns) {
  if (rows == 0) return 0;
  const std::size_t blocks = (rows - 1) / kCodeRows + 1;
  if (columns != 0 && blocks > (SIZE_MAX - kCodeSlack) / kCodeRows / columns) return SIZE_MAX;
  return code_bytes(rows, columns) + kCodeSlack;
}

std::uint32_t output_width(const ProgramMeta& meta, OutputKind output) {
  switch (output) {
    case OutputKind::Raw:
      return meta.num_outputs;
    case OutputKind::Value:
      return value_width(meta.transform, meta.pair, meta.num_outputs);
    case OutputKind::Class:
      return label_width(meta.class_rule, meta.num_outputs);
    case OutputKind::Leaf:
      return meta.num_trees;
  }
  return 0;
}

}  // namespace forestvm
