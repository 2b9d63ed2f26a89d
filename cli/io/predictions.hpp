// Predictions out: NPY or CSV, by the name of the file, batch after batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <forestvm/result.hpp>

#include "cli/io/output_file.hpp"

namespace forestvm::cli {

/// What is about to be written: an array of shape (rows,) when columns is 1, else (rows, columns), C order,
/// where `rows` is counted while they are written.
struct PredictionForm {
  enum class Type { Float32, Float64, Int32, Int64 };

  std::size_t columns = 1;
  Type type = Type::Float32;
  std::span<const std::string> labels{};  ///< CSV writes labels[i] for the integer i; empty: the integer
  bool matrix = false;                    ///< of shape (rows, columns) also when columns is 1
};

/// Bytes of a value.
std::size_t size_of(PredictionForm::Type type);

/// Usage error for a file name whose ending is none that predictions are written as.
Result<void> check_predictions_name(const std::string& path);

/// One batch: whole rows, the form's type.
using PredictionValues = std::variant<std::span<const float>, std::span<const double>,
                                      std::span<const std::int32_t>, std::span<const std::int64_t>>;

class PredictionWriter {
 public:
  /// A name ending in .npy (or .NPY) gets an NPY array; any other name, and "-" (standard output), CSV: one
  /// line per row, no header, each number the shortest text that reads back to the same bits. An NPY array
  /// says how many rows it has before the first: where the output is no file, it lies in a temporary one
  /// until it is complete.
  static Result<PredictionWriter> open(const std::string& path, const PredictionForm& form);

  Result<void> write(const PredictionValues& values);

  /// After the last row.
  Result<void> finish();

 private:
  PredictionWriter(OutputFile file, const PredictionForm& form, bool npy)
      : file_(std::move(file)), form_(form), npy_(npy) {}

  std::string header() const;
  Result<void> write_bytes(std::span<const std::byte> bytes);
  template <class T>
  Result<void> write_text(std::span<const T> values);
  Result<void> write_kept();

  OutputFile file_;
  PredictionForm form_;
  bool npy_;
  std::size_t written_ = 0;                                                      // values
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> kept_{nullptr, &std::fclose};  // values of an NPY array
                                                                                 // whose header cannot be
                                                                                 // written again
};

}  // namespace forestvm::cli
