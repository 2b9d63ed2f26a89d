// Reads rows from CSV (RFC 4180, with any separator and an optional header), and writes numbers and texts as CSV. It
// does not depend on the locale.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"
#include "cli/io/table.hpp"

namespace forestvm::cli {

/// Reads a table, as float64 if the model compares in float64. The separator is the form's; if the form has none,
/// find_separator finds it. The first line is a header if `form` says so, or if one of its cells cannot be a value, or
/// if its cells are the model's feature names in some order. Named columns are put into the model's order, see
/// ColumnNames; a header that does not match is refused or, if the model has no names of its own, skipped with a
/// notice. Columns that are no features are refused unless the form says otherwise. read_cell says what a cell's text
/// means. Blank lines at the end, CRLF, quotes and spaces around a number are accepted. Refuses, with line and column,
/// a row with another number of cells than expected, a cell that is not a value, and a first line that could be either
/// a header or a row. `source` must outlive the reader.
Result<std::unique_ptr<TableReader>> csv_reader(Source& source, const RowForm& form);

/// Appends the shortest text that reads back to the same bits.
void append_number(std::string& to, float value);
void append_number(std::string& to, double value);
void append_number(std::string& to, std::int64_t value);

/// Appends a cell, in quotes where RFC 4180 needs them.
void append_text(std::string& to, std::string_view cell);

}  // namespace forestvm::cli
