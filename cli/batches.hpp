// Rows of a file for a program, batch after batch: dense ones of an NPY or CSV file, or encoded ones.
#pragma once

#include <algorithm>
#include <chrono>
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

namespace forestvm::cli {

/// An option that the commands for rows share.
extern const Option kMissingOption;

/// What the command line says of the rows.
struct BatchOptions {
  std::string path;                  ///< ROWS
  std::optional<std::size_t> batch;  ///< --batch
  std::optional<float> missing;      ///< --missing
};
Result<BatchOptions> batch_options(const Arguments& arguments);

class Batches {
 public:
  /// Opens the rows and reads the first batch. Errors name the file. Usage for options that encoded rows do
  /// not have.
  static Result<Batches> open(const BatchOptions& options, const Program& program);

  /// The current batch, good until the next; no rows after the last.
  const AnyRows& rows() const { return rows_; }

  /// Goes on to the next. Errors name the file.
  Result<void> next();

  /// A bar for all of them, in rows where the file says how many there are, else in bytes of it.
  Progress progress() const { return Progress(2, total_, std::chrono::seconds(1), false, unit()); }

  /// How many of what the bar counts lie before the current batch.
  std::size_t done() const { return counted() ? before_ : total_ - std::min(total_, left()); }

 private:
  Batches(BatchOptions options, std::variant<RowReader, CodedReader> reader)
      : options_(std::move(options)), reader_(std::move(reader)) {}

  bool counted() const;
  std::size_t left() const;
  const char* unit() const { return counted() ? "rows" : "bytes"; }
  Result<void> read();

  BatchOptions options_;
  std::variant<RowReader, CodedReader> reader_;
  std::size_t size_ = 0;    // of a batch of dense rows
  std::size_t total_ = 0;   // of what the bar counts
  std::size_t before_ = 0;  // rows of the batches before
  Rows dense_;
  AnyRows rows_;
};

}  // namespace forestvm::cli
