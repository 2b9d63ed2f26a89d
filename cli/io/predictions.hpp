// Writes predictions batch after batch, as NPY or CSV: the name of the file says which.
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

/// The shape and type of predictions to write, in C order. The shape is (rows,) if columns is 1, otherwise (rows,
/// columns); if `inner` is not empty, it is (rows, inner...). Rows are counted while they are written.
struct PredictionForm {
  enum class Type { Float32, Float64, Int32, Int64 };

  std::size_t columns = 1;
  Type type = Type::Float32;
  /// CSV has labels[i] in place of the integer i; empty: the integer.
  std::span<const std::string> labels{};
  bool matrix = false;                   ///< True if the shape is (rows, columns) even if columns is 1.
  std::span<const std::string> names{};  ///< CSV begins with a line of these names; empty: it has no header.
  /// Sizes of an NPY array's dimensions after the first; empty: as `columns` says.
  std::vector<std::size_t> inner{};
  /// The columns are cut into groups of this size, and labels are not applied to the last column of a group, which is a
  /// value. If 1, labels are applied to all columns.
  std::size_t group = 1;
};

/// Returns the size of a value in bytes.
std::size_t size_of(PredictionForm::Type type);

/// Returns whether predictions in a file of this name are an NPY array.
bool is_npy_name(const std::string& path);

/// Returns a Usage error for a file name with an ending that predictions cannot be written as.
Result<void> check_predictions_name(const std::string& path);

/// The values of a batch: whole rows of the form's type.
using PredictionValues = std::variant<std::span<const float>, std::span<const double>,
                                      std::span<const std::int32_t>, std::span<const std::int64_t>>;

class PredictionWriter {
 public:
  /// Opens the output. A name that ends in .npy (or .NPY) gets an NPY array; any other name, and "-"
  /// (standard output), CSV: one line per row, after a header if the form has names, each number the shortest
  /// text that reads back to the same bits. An NPY header needs the number of rows; if the output is not a
  /// file, values are kept in a temporary file until it is known.
  static Result<PredictionWriter> open(const std::string& path, const PredictionForm& form);

  /// Writes a batch. In CSV each row begins with its cell of `kept`, unless that is empty.
  Result<void> write(const PredictionValues& values, std::span<const std::string> kept = {});

  /// Hands on what was written, so that a reader at the other end of a pipe gets it before the next batch. Does
  /// nothing for output that appears only when it is complete.
  Result<void> flush();

  /// Completes the output; called after the last row.
  Result<void> finish();

 private:
  PredictionWriter(OutputFile file, PredictionForm form, bool npy)
      : file_(std::move(file)), form_(std::move(form)), npy_(npy) {}

  std::string header() const;
  Result<void> write_bytes(std::span<const std::byte> bytes);
  template <class T>
  Result<void> write_text(std::span<const T> values, std::span<const std::string> kept);
  Result<void> write_names();
  Result<void> write_kept();

  OutputFile file_;
  PredictionForm form_;
  bool npy_;
  std::size_t written_ = 0;  // number of values
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> kept_{
      nullptr, &std::fclose};  // values of an NPY array whose header cannot be overwritten
};

}  // namespace forestvm::cli
