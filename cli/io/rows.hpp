// Rows for a model: an NPY or CSV file in, a float32 matrix in the model's column order out.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"
#include "cli/io/table.hpp"

namespace forestvm::cli {

/// What the model expects of a row.
struct RowForm {
  std::size_t width = 0;
  std::span<const std::string> names;  ///< empty, or `width` names
  bool exact = false;                  ///< numbers of NPY arrays that are no float32 are refused
};

struct Rows {
  std::size_t count = 0;
  std::size_t width = 0;
  std::vector<float> values;  ///< count x width, row-major; NaN is a missing value
};

/// Reads the rows in `path` ("-": standard input). NPY or CSV is found from the content. Columns with names
/// are put into the model's order by name when the model has names too; otherwise they count by position.
/// Refused: another width (both are named), names that are not the model's, and what read_npy and read_csv
/// refuse. Environment when the file cannot be read.
Result<Rows> read_rows(const std::string& path, const RowForm& form);
Result<Rows> read_rows(Source& source, const RowForm& form);

/// Makes every value that equals `missing` (so -0 equals 0) a missing one.
void mark_missing(Rows& rows, float missing);

}  // namespace forestvm::cli
