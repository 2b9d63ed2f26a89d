// What every backend asks of a call, and how it gets float32 rows of it, so that all of them refuse the same
// calls with the same words. Implemented by vm/host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/code_map.hpp>

namespace forestvm {

/// Where a call's predictions go, and as which numbers.
struct Destination {
  ResultType type = ResultType::Float32;
  void* out = nullptr;

  /// Returns the place so many elements further on.
  Destination from(std::size_t element) const;

  // The memory if it is of this type, else null.
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

/// Copies `count` numbers of an output from where a program wrote them, in the type that is wanted there.
void deliver(OutputKind output, const void* written, std::size_t count, const Destination& to);

/// A Predictor whose calls are checked for what they want before they run.
class CallPredictor : public Predictor {
 public:
  Result<void> predict_as(Context& context, const AnyRows& rows, OutputKind output, ResultType type,
                          void* out) const final;

 private:
  virtual Result<void> run(Context& context, const AnyRows& rows, OutputKind output,
                           const Destination& to) const = 0;
};

std::size_t bytes_of(RowType type);

/// Writes the float32 nearest to each of `count` values, which need no alignment.
void to_float32(RowType type, const void* values, std::size_t count, float* out);

/// Returns the number of the first value that no float32 is equal to; `count` if there is none. NaN is a
/// missing value in every type.
std::size_t first_inexact(RowType type, const void* values, std::size_t count);

/// Returns a value that first_inexact found as text.
std::string inexact_text(RowType type, const void* value);

/// Returns the error of a number that is no float32, for a model that compares in float64. `instead` says
/// what to do if rounding is meant.
Error not_exact(std::string place, const std::string& number, const std::string& instead);

/// What can be said of a call's rows before any is read. Errors: see Predictor::predict_as.
Result<void> check_rows(const ProgramMeta& meta, const RowBlock& rows);
Result<void> check_rows(const CsrRows& rows);
Result<void> check_rows(const ProgramMeta& meta, const DeviceRows& rows);

/// Checks what `count` rows from `begin` on hold: of sparse rows that they lie inside the values and name
/// features of the model; where the program has float64 scores, that each value is a float32. The rows have
/// passed check_rows. Errors say which row is wrong.
Result<void> check_row_values(const ProgramMeta& meta, const AnyRows& rows, std::size_t begin,
                              std::size_t count);

/// Which encoded rows a program takes: those of its encoder, in plans whose walks read codes alone.
class CodedPlans {
 public:
  explicit CodedPlans(const Program& program);

  /// Refused if there is no such plan.
  Result<void> check() const;
  /// Whether the rows can be taken. Errors: see Predictor::predict_as.
  Result<void> check(const CodedRows& rows) const;
  /// Whether walks of the plan for so many rows read values.
  bool reads_values(std::size_t rows) const;
  /// For how many rows the plan is chosen that takes so many encoded ones: as many, or else the next more
  /// whose plan takes codes, or else the next fewer. There is such a plan.
  std::uint32_t plan_rows(std::uint32_t rows) const;
  /// encoder_id of the program.
  std::uint64_t encoder() const { return encoder_; }

 private:
  /// The plans of which one is for so many rows, or else those for the next more, or else for fewer.
  const RowCounts& plans_for(std::size_t rows) const;

  std::vector<RowCounts> plans_;  ///< ascending
  std::size_t columns_;
  std::uint64_t encoder_;
};

/// For messages.
std::string rows_text(const CodedRows& rows);

/// The error of a call without memory for its rows or output.
Error no_buffer();

/// Whether walks can read the rows where they are: row-major float32, with nothing to be marked missing.
bool are_float_rows(const Program& program, const RowBlock& rows);

/// Writes `count` dense or sparse rows from `begin` on as walks read them: num_features float32 each, one row
/// after the other. The rows have passed check_row_values.
void fill_float_rows(const Program& program, const AnyRows& rows, std::size_t begin, std::size_t count,
                     float* out);

}  // namespace forestvm
