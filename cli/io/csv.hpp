// CSV: rows in (RFC 4180, comma, optional header), numbers as text in both directions, locale-free.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"
#include "cli/io/table.hpp"

namespace forestvm::cli {

/// Returns the float32 nearest to a decimal number; ±inf and ±0 beyond the range, as strtof does. Accepts
/// nan, inf and infinity in any case. Returns nothing for any other text, including an empty one.
std::optional<float> parse_float(std::string_view text);

/// Returns the number that stands for a missing value; nothing for texts of which parse_float returns nothing.
std::optional<MissingNumber> parse_missing(std::string_view text);

/// Reads a table, as float64 where the model compares in float64. The first line is a header if `form` says so, or
/// if one of its cells is not a number, or if its cells are exactly the model's feature names in some order. Named
/// columns are put into the model's order, see ColumnNames; a header that does not match is refused or, if the model
/// has no names of its own, skipped with a notice. An empty cell is missing (NaN). Blank lines at the end, CRLF, a
/// UTF-8 byte order mark and spaces around a number are accepted. Refuses, with line and column, a row with another
/// number of cells than the model has features, a cell that is not a number, and a first line that could be either a
/// header or a row. `source` must outlive the reader.
Result<std::unique_ptr<TableReader>> csv_reader(Source& source, const RowForm& form);

/// Appends the shortest text that reads back to the same bits.
void append_number(std::string& to, float value);
void append_number(std::string& to, double value);
void append_number(std::string& to, std::int64_t value);

/// Appends a cell, in quotes where RFC 4180 needs them.
void append_text(std::string& to, std::string_view cell);

}  // namespace forestvm::cli
