// Rows of a file for a program, batch after batch: dense ones of an NPY or CSV file, or encoded ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
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

/// What the command line says of the rows.
struct BatchOptions {
  std::string path;                  ///< ROWS
  std::optional<std::size_t> batch;  ///< --batch
  RowOptions form;
};
Result<BatchOptions> batch_options(const Arguments& arguments);

class Batches {
 public:
  /// Opens the rows and reads the first batch. `answer_bytes`: what the caller makes of a row takes. Batches
  /// of dense rows are such that rows and answers together take 32 MiB, or one row; encoded ones that answers
  /// do, or one block of codes; unless --batch says otherwise. Errors name the file. Usage for options that
  /// encoded rows do not have.
  static Result<Batches> open(const BatchOptions& options, const Program& program, std::size_t answer_bytes);

  /// The current batch, good until the next; no rows after the last.
  const AnyRows& rows() const { return rows_; }

  /// Goes on to the next. Errors name the file.
  Result<void> next();

  /// A bar for all of them, in rows where the file says how many there are, else in bytes of it. Results that
  /// go to `output` show how far the work is, if that is a terminal: there is no bar then.
  Progress progress(const std::string& output) const;

  /// How many of what the bar counts lie before the current batch.
  std::size_t done() const { return counted() ? before_ : total_ - std::min(total_, left()); }

 private:
  Batches(BatchOptions options, std::variant<RowReader, CodedReader> reader)
      : options_(std::move(options)), reader_(std::move(reader)) {}

  bool counted() const;
  std::size_t left() const;
  Result<void> read();

  BatchOptions options_;
  std::variant<RowReader, CodedReader> reader_;
  std::size_t size_ = 0;    // of a batch
  std::size_t total_ = 0;   // of what the bar counts
  std::size_t before_ = 0;  // rows of the batches before
  Rows dense_;
  CodedRows coded_;  // of the reader's batch, what comes after the current one
  AnyRows rows_;
};

}  // namespace forestvm::cli
