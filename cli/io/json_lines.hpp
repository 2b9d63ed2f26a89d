// Reads rows from JSON lines: each line holds a JSON object or array, which is a row.
#pragma once

#include <memory>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"
#include "cli/io/table.hpp"

namespace forestvm::cli {

/// Reads rows: objects that have a value for each feature by name, in any order, or arrays of values in the model's
/// order. FeatureNames says which names the features of a model without names have. A value is a number, true, false,
/// null (missing), NaN, Infinity or -Infinity (as Python writes them) or a text that read_cell accepts. Blank lines are
/// skipped. Refuses, with line and column, lines that are not JSON, values that are objects or arrays, features that
/// are absent or twice in an object, names that are no features unless the form says otherwise, and lines of more than
/// 1 MiB plus 4 KiB for each feature. `source` must outlive the reader.
Result<std::unique_ptr<TableReader>> json_lines_reader(Source& source, const RowForm& form);

}  // namespace forestvm::cli
