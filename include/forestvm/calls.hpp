// What every backend asks of a call, and how it gets float32 rows of it, so that all of them refuse the same
// calls with the same words. Implemented by vm/host.
#pragma once

#include <cstddef>
#include <cstdint>

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
};

/// Usage unless `output` is what predict gives: raw scores or values.
Result<void> check_score_output(OutputKind output);

/// Refused if the model has no classes.
Result<void> check_classes(const Program& program);

/// What can be said of a call's rows before any is read. Errors: see Predictor::predict.
Result<void> check_rows(const ProgramMeta& meta, const RowBlock& rows);
Result<void> check_rows(const CsrRows& rows);

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
