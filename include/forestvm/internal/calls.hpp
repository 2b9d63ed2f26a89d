// Checks that every backend makes of a call, and conversions of its rows to float32, so that all backends
// refuse the same calls with the same messages. Implemented by vm/call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/code_map.hpp>
#include <forestvm/internal/value_rules.hpp>

namespace forestvm {

/// The memory that a call's predictions go to, and their type.
struct Destination {
  ResultType type = ResultType::Float32;
  void* out = nullptr;

  /// Returns the destination that begins `element` elements further on.
  Destination from(std::size_t element) const;

  // These return the memory if it is of their type, otherwise null.
  float* values() const { return as<float>(ResultType::Float32); }
  double* wide_values() const { return as<double>(ResultType::Float64); }
  std::int64_t* labels() const { return as<std::int64_t>(ResultType::Int64); }
  std::int32_t* leaves() const { return as<std::int32_t>(ResultType::Int32); }

 private:
  template <class Number>
  Number* as(ResultType number) const {
    return type == number ? static_cast<Number*>(out) : nullptr;
  }
};

std::size_t bytes_of(ResultType type);

/// Returns the type in which programs write an output that is wanted in `type`: labels as Int64, leaf numbers
/// as Int32, scores as they are wanted.
ResultType written_type(OutputKind output, ResultType type);

/// Copies `count` numbers of an output from `written`, in the program's type, to `to`, in the caller's type.
void deliver(OutputKind output, const void* written, std::size_t count, const Destination& to);

/// A Predictor that checks the output and type of each call before it runs.
class CallPredictor : public Predictor {
 public:
  Result<void> predict_as(Context& context, const AnyRows& rows, OutputKind output, ResultType type,
                          void* out) const final;

 private:
  virtual Result<void> run(Context& context, const AnyRows& rows, OutputKind output,
                           const Destination& to) const = 0;
};

std::size_t bytes_of(RowType type);

/// Returns whether each value of the type is a float32 number.
bool is_float32(RowType type);

/// Writes the float32 or float64 nearest to each of `count` values. The values need not be aligned.
void to_float32(RowType type, const void* values, std::size_t count, float* out);
void to_float64(RowType type, const void* values, std::size_t count, double* out);

/// Returns the index of the first value that has no equal float64, which is an integer beyond 2^53; `count` if there
/// is none.
std::size_t first_inexact(RowType type, const void* values, std::size_t count);

/// Returns the text of a value that first_inexact found.
std::string inexact_text(RowType type, const void* value);

/// Returns the error for a number that is no float64, in a model that compares in float64. `instead` says
/// what to do if rounding is intended.
Error not_exact(std::string place, const std::string& number, const std::string& instead);

/// Checks what can be known of a call's rows before any is read. Errors: see Predictor::predict_as.
Result<void> check_rows(const ProgramMeta& meta, const RowBlock& rows);
Result<void> check_rows(const CsrRows& rows);
Result<void> check_rows(const ProgramMeta& meta, const DeviceRows& rows);

/// Checks the values of `count` rows from `begin` on. Sparse rows must lie inside the values and name
/// features of the model; where the program compares in float64, each value must be a float64. The rows have
/// passed check_rows. Errors name the row.
Result<void> check_row_values(const ProgramMeta& meta, const AnyRows& rows, std::size_t begin,
                              std::size_t count);

/// The encoded rows that a program takes: codes of its own encoder, in plans whose walks read only codes.
class CodedPlans {
 public:
  explicit CodedPlans(const Program& program);

  /// Checks that some plan reads only codes; Refused if none does.
  Result<void> check() const;
  /// Checks whether these rows can be taken. Errors: see Predictor::predict_as.
  Result<void> check(const CodedRows& rows) const;
  /// Returns whether walks of the plan for `rows` rows read values.
  bool reads_values(std::size_t rows) const;
  /// Returns the row count by which to select a plan for `rows` encoded rows: `rows` itself, or the nearest
  /// larger (otherwise smaller) count whose plan reads only codes. There must be such a plan.
  std::uint32_t plan_rows(std::uint32_t rows) const;
  /// Returns encoder_id of the program.
  std::uint64_t encoder() const { return encoder_; }

 private:
  /// Returns the entry of plans_ that contains `rows`, otherwise the next larger one, otherwise the last.
  const RowCounts& plans_for(std::size_t rows) const;

  std::vector<RowCounts> plans_;  ///< Row counts whose plans read only codes, ascending.
  std::size_t columns_;
  std::uint64_t encoder_;
};

/// Describes encoded rows for messages: "5 rows of 3 columns".
std::string rows_text(const CodedRows& rows);

/// Returns the error of a call without memory for its rows or output.
Error no_buffer();

/// Returns whether walks can read the rows where they are: row-major float32, of which all values are compared as
/// they are.
bool are_float_rows(const ValueRules& rules, const RowBlock& rows);

/// Writes `count` dense or sparse rows from `begin` on as walks read them: row_width float32 each, one row after the
/// other. The rows have passed check_row_values. Errors: see ColumnRules::complete.
Result<void> fill_float_rows(const ValueRules& rules, const ProgramMeta& meta, const AnyRows& rows,
                             std::size_t begin, std::size_t count, float* out);

}  // namespace forestvm
