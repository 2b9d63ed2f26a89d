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

/// The float32 nearest to a decimal number; beyond the range ±inf and ±0 as strtof. nan, inf and infinity
/// in any case. Nothing for every other text, the empty one included.
std::optional<float> parse_float(std::string_view text);

/// Reads a table. The first line is a header if `form` says so, or else if a cell of it is no number, or if
/// its cells are exactly the model's feature names in some order. Columns with names are put into the model's
/// order by name, see ColumnNames; a header that cannot be used for that is refused, or, if the model has no
/// names of its own, skipped with a notice. An empty cell is missing (NaN). Blank lines at the end, CRLF, a
/// UTF-8 byte order mark and spaces around a number are fine. Refused with line and column: another number
/// of cells than the model has features, a cell that is no number, and a first line that may as well be a
/// header as a row. `source` must outlive the reader.
Result<std::unique_ptr<TableReader>> csv_reader(Source& source, const RowForm& form);

/// Appends the shortest text that reads back to the same bits.
void append_number(std::string& to, float value);
void append_number(std::string& to, double value);
void append_number(std::string& to, std::int64_t value);

/// Appends a cell, in quotes where RFC 4180 needs them.
void append_text(std::string& to, std::string_view cell);

}  // namespace forestvm::cli
