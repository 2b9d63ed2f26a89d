// What every backend asks of a call, and how it gets float32 rows of it, so that all of them refuse the same
// calls with the same words. Implemented by vm/host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>

namespace forestvm {

/// Where a call's predictions go: one of them is set.
struct Destination {
  float* values = nullptr;
  double* wide_values = nullptr;
  std::int64_t* labels = nullptr;
  std::int32_t* leaves = nullptr;

  bool is_nowhere() const {
    return values == nullptr && wide_values == nullptr && labels == nullptr && leaves == nullptr;
  }
  /// The same, so many elements further on.
  Destination from(std::size_t element) const {
    Destination further = *this;
    if (values != nullptr) further.values += element;
    if (wide_values != nullptr) further.wide_values += element;
    if (labels != nullptr) further.labels += element;
    if (leaves != nullptr) further.leaves += element;
    return further;
  }
};

/// A Predictor whose predictions of every kind are one call.
class CallPredictor : public Predictor {
 public:
  Result<void> predict(Context& context, const AnyRows& rows, OutputKind output, float* out) const final;
  Result<void> predict_wide(Context& context, const AnyRows& rows, OutputKind output,
                            double* out) const final;
  Result<void> predict_class(Context& context, const AnyRows& rows, std::int64_t* out) const final;
  Result<void> predict_leaf(Context& context, const AnyRows& rows, std::int32_t* out) const final;

 private:
  virtual Result<void> run(Context& context, const AnyRows& rows, OutputKind output,
                           const Destination& to) const = 0;
};

/// Usage unless `output` is what predict gives: raw scores or values.
Result<void> check_score_output(OutputKind output);

/// Refused if the model has no classes.
Result<void> check_classes(const Program& program);

/// What can be said of a call's rows before any is read. Errors: see Predictor::predict.
Result<void> check_rows(const ProgramMeta& meta, const RowBlock& rows);
Result<void> check_rows(const CsrRows& rows);
Result<void> check_rows(const ProgramMeta& meta, const DeviceRows& rows);

/// Numbers of rows, both included.
struct RowCounts {
  std::uint32_t least, most;
};

/// Which encoded rows a program takes: those of its encoder, in plans whose walks read codes alone.
class CodedPlans {
 public:
  explicit CodedPlans(const Program& program);

  /// Refused if there is no such plan.
  Result<void> check() const;
  /// Whether the rows can be taken. Errors: see Predictor::predict.
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

/// Whether walks can read the rows where they are: float32, with nothing to be marked missing.
bool are_float_rows(const Program& program, const RowBlock& rows);

/// Writes `count` rows from `begin` on as walks read them, num_features float32 each, one row after the
/// other. The rows are checked, of sparse ones these too: check_csr_rows.
void fill_float_rows(const Program& program, const RowBlock& rows, std::size_t begin, std::size_t count,
                     float* out);
void fill_float_rows(const Program& program, const CsrRows& rows, std::size_t begin, std::size_t count,
                     float* out);

/// Whether `count` rows from `first` on lie inside the values and name features of a model of so many. Usage
/// errors say which row is wrong.
Result<void> check_csr_rows(const CsrRows& rows, std::size_t first, std::size_t count,
                            std::uint32_t num_features);

}  // namespace forestvm
