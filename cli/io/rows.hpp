// Reads rows for a model from a file of any format, in the order of the model's features, a block at a time.
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

/// Returns the first option of the command line whose part of the form differs from the default; null if there is none.
const char* first_option(const RowForm& form);

/// Reads the rows of a file block after block. Memory holds one block, however many rows there are.
class RowReader {
 public:
  /// Opens rows. The form or the content tells the format, and gzip is unpacked. Refuses what the format's reader
  /// refuses. Returns a Usage error for an option that the format does not have, and an Environment error if the file
  /// cannot be read.
  static Result<RowReader> open(Source source, const RowForm& form);

  /// Replaces `rows` by up to `most` following rows; by none after the last. Refuses errors in these rows,
  /// or in the text that follows the last one.
  Result<void> next(std::size_t most, Rows& rows);

  /// Returns the number of rows if the file says it; a text does not.
  std::optional<std::size_t> count() const { return table_->rows(); }

  /// Returns the type of the rows: Float32, or Float64 if the model compares in float64 and the file's numbers need it.
  RowType type() const { return table_->type(); }

  /// Returns a remark for the user on how the file is read; usually empty.
  const std::string& notice() const { return table_->notice(); }

  /// Returns the number of bytes not yet read, if the file's size is known.
  std::optional<std::uint64_t> bytes_left() const { return source_->bytes_left(); }

 private:
  RowReader() = default;

  std::unique_ptr<Source> source_;
  std::unique_ptr<TableReader> table_;
};

}  // namespace forestvm::cli
