// See forestvm/calls.hpp.
#include <forestvm/calls.hpp>

#include <string>

#include <forestvm/float_environment.hpp>

#include "vm/host/convert_rows.hpp"
#include "vm/host/csr_rows.hpp"

namespace forestvm {
namespace {

Error usage(std::string message) { return {ErrorCode::Usage, "", std::move(message)}; }

}  // namespace

Result<void> CallPredictor::predict(Context& context, const AnyRows& rows, OutputKind output,
                                    float* out) const {
  FVM_TRY(check_score_output(output));
  return run(context, rows, output, {.values = out});
}

Result<void> CallPredictor::predict_wide(Context& context, const AnyRows& rows, OutputKind output,
                                         double* out) const {
  FVM_TRY(check_score_output(output));
  return run(context, rows, output, {.wide_values = out});
}

Result<void> CallPredictor::predict_class(Context& context, const AnyRows& rows, std::int64_t* out) const {
  FVM_TRY(check_classes(program()));
  return run(context, rows, OutputKind::Class, {.labels = out});
}

Result<void> CallPredictor::predict_leaf(Context& context, const AnyRows& rows, std::int32_t* out) const {
  return run(context, rows, OutputKind::Leaf, {.leaves = out});
}

Error no_buffer() { return usage("no buffer for rows or output"); }

Result<void> check_score_output(OutputKind output) {
  if (output == OutputKind::Raw || output == OutputKind::Value) return {};
  return usage(
      "predict gives raw scores or values; labels come from predict_class, leaf numbers from predict_leaf");
}

Result<void> check_classes(const Program& program) {
  if (output_width(program.meta(), OutputKind::Class) != 0) return {};
  return refused("output class", "the model has no classes: its objective is " +
                                     std::string(program.text(StringId::Objective)));
}

Result<void> check_rows(const ProgramMeta& meta, const RowBlock& rows) {
  if (rows.count == 0) return {};
  if (rows.stride < meta.num_features)
    return usage("rows of " + std::to_string(rows.stride) + " values for a model of " +
                 std::to_string(meta.num_features) + " features");
  std::size_t values = 0;
  if (__builtin_mul_overflow(rows.count, rows.stride, &values) || values > SIZE_MAX / sizeof(double))
    return usage(std::to_string(rows.count) + " rows, " + std::to_string(rows.stride) +
                 " numbers apart, are more than memory holds");
  if (rows.type == RowType::Float64 && meta.score_type == ScalarType::Float64)
    return refused(
        "rows",
        "are float64, which would be rounded to float32: the model compares float64 thresholds, so "
        "that a row could go another way; pass float32");
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

bool are_float_rows(const Program& program, const RowBlock& rows) {
  return rows.type == RowType::Float32 && program.section_ZeroMissing().empty();
}

void fill_float_rows(const Program& program, const RowBlock& rows, std::size_t begin, std::size_t count,
                     float* out) {
  const FloatEnvironment environment;  // the rounding is ours, not the caller's
  const std::size_t width = program.meta().num_features;
  host::convert_rows(rows, begin, count, width, out);
  host::mark_zeros_missing(program.section_ZeroMissing(), count, width, out);
}

void fill_float_rows(const Program& program, const CsrRows& rows, std::size_t begin, std::size_t count,
                     float* out) {
  const FloatEnvironment environment;
  const std::size_t width = program.meta().num_features;
  host::fill_csr_rows(rows, begin, count, width, out);
  host::mark_zeros_missing(program.section_ZeroMissing(), count, width, out);
}

}  // namespace forestvm
