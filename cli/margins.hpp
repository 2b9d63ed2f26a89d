// Reads the margins of --base-margin from a file, a batch at a time with the batches of rows.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <forestvm/backend.hpp>
#include <forestvm/program.hpp>
#include <forestvm/result.hpp>

#include "cli/command.hpp"
#include "cli/io/source.hpp"
#include "cli/io/table.hpp"

namespace forestvm::cli {

extern const Option kBaseMarginOption;

/// The margins of a file, read forward once. Errors name the file.
class Margins {
 public:
  /// Opens an NPY array of shape (rows,) or (rows, outputs). Refuses other shapes, and what the reader of NPY refuses.
  static Result<Margins> open(const std::string& path, const Program& program);

  /// Returns the margins of the next `count` rows, which are valid until the next call. Refuses a file with fewer rows,
  /// and a margin that is not finite in the type of the program's scores (the message names its row in the file).
  Result<BaseMargin> next(std::size_t count);

  /// Refuses a file that has more margins than there are rows.
  Result<void> finish() const;

 private:
  Margins(std::string path, ScalarType score_type, std::unique_ptr<Source> source,
          std::unique_ptr<TableReader> table)
      : path_(std::move(path)),
        score_type_(score_type),
        source_(std::move(source)),
        table_(std::move(table)) {}

  /// Returns the error for another number of rows than there are. `what` says which rows `rows` counts.
  Error wrong_rows(std::size_t rows, const char* what) const;

  std::string path_;
  ScalarType score_type_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<TableReader> table_;
  Rows block_;
  std::size_t before_ = 0;  ///< Rows of earlier blocks.
};

}  // namespace forestvm::cli
