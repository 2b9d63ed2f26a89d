// Rows for a model: an NPY or CSV file in, float32 rows in the model's column order out, a block at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"
#include "cli/io/table.hpp"

namespace forestvm::cli {

struct Rows {
  std::size_t count = 0;
  std::size_t width = 0;
  std::vector<float> values;  ///< count x width, row-major; NaN is a missing value
};

/// Rows of a file, block after block: memory for one block, however many there are.
class RowReader {
 public:
  /// Opens the rows in `path` ("-": standard input). NPY or CSV is found from the content. Refused: what
  /// npy_reader and csv_reader refuse. Usage error for a header asked of what is no CSV. Environment when the
  /// file cannot be read.
  static Result<RowReader> open(const std::string& path, const RowForm& form);
  static Result<RowReader> open(Source source, const RowForm& form);

  /// Replaces `rows` by the next ones, up to `most`; by none after the last. Refused: what is wrong with
  /// these rows, or with what the file has after the last.
  Result<void> next(std::size_t most, Rows& rows);

  /// How many rows the file says that it has; a CSV file does not say it.
  std::optional<std::size_t> count() const { return table_->rows(); }

  /// What the user should know of how the file is read; usually empty.
  const std::string& notice() const { return table_->notice(); }

  /// Of the file, where its size is known.
  std::optional<std::uint64_t> bytes_left() const { return source_->bytes_left(); }

 private:
  RowReader() = default;

  std::unique_ptr<Source> source_;
  std::unique_ptr<TableReader> table_;
};

}  // namespace forestvm::cli
