// Reads the rows of a file for a program, batch after batch: dense rows of any format, or encoded rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include <forestvm/backend.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "cli/command.hpp"
#include "cli/io/coded_file.hpp"
#include "cli/io/rows.hpp"
#include "cli/progress.hpp"
#include "cli/row_options.hpp"

namespace forestvm::cli {

/// The options for rows on the command line.
struct BatchOptions {
  std::string path;                  ///< Value of ROWS.
  std::optional<std::size_t> batch;  ///< Value of --batch.
  RowForm form;                      ///< Format and values, as the other options describe them.
};
Result<BatchOptions> batch_options(const Arguments& arguments);

class Batches {
 public:
  /// Opens the rows and reads the first batch. `answer_bytes` is the size of what the caller computes for a row. Unless
  /// --batch says otherwise, a batch has up to 65536 rows, so that dense rows take at most 32 MiB with their answers
  /// (but at least one row), and the answers of encoded rows at most 32 MiB (but at least one block of codes). Errors
  /// name the file. Returns a Usage error for options that encoded rows do not have.
  static Result<Batches> open(const BatchOptions& options, const Program& program, std::size_t answer_bytes);

  /// Returns the current batch, which is valid until next() is called. It has no rows after the last batch.
  const AnyRows& rows() const { return rows_; }

  /// Returns the cells of the column to keep, one for each row of the batch; none if no column is kept.
  std::span<const std::string> kept() const { return dense_.kept; }

  /// Goes on to the next batch. Errors name the file.
  Result<void> next();

  /// Returns a progress bar for the whole file, in rows if the file says how many it has, otherwise in bytes. There is
  /// no bar if `output` is "-" and standard output is a terminal, because the results there show the progress.
  Progress progress(const std::string& output) const;

  /// Returns how much of the file comes before the current batch, in the unit of the bar: rows or bytes.
  std::size_t done() const { return counted() ? before_ : total_ - std::min(total_, left()); }

 private:
  Batches(BatchOptions options, std::variant<RowReader, CodedReader> reader)
      : options_(std::move(options)), reader_(std::move(reader)) {}

  bool counted() const;
  std::size_t left() const;
  Result<void> read();

  BatchOptions options_;
  std::variant<RowReader, CodedReader> reader_;
  std::size_t size_ = 0;    // Rows of a batch.
  std::size_t total_ = 0;   // Size of the file in the unit of the bar.
  std::size_t before_ = 0;  // Rows of earlier batches.
  Rows dense_;
  CodedRows coded_;  // Rest of the reader's batch, after the current one.
  AnyRows rows_;
};

}  // namespace forestvm::cli
