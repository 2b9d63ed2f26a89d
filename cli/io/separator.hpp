// Finds the character between the cells of a text table from its first line.
#pragma once

#include <cstddef>
#include <string_view>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"

namespace forestvm::cli {

/// Stands for runs of spaces and tabs. Any other separator is one character.
inline constexpr char kBlanks = ' ';

/// Returns the separator of a table whose rows should have `width` cells, from its first line outside quotes:
/// - a comma, semicolon or tab if it is the only one of these three in the line;
/// - the one that gives `width` cells if several of the three are in the line;
/// - kBlanks if the line has none of the three but blanks between cells, and the width is above 1;
/// - a comma if the line is one cell.
/// Refuses a line with several of the three if not exactly one of them gives `width` cells.
Result<char> find_separator(Source& source, std::size_t width);

/// Returns the first line of the input without taking it: up to its end, or at least `most` bytes of a longer one. A
/// line goes on inside quotes if `quoted`. Reads no more than this needs, because the next line may not exist yet.
Result<std::string_view> first_line(Source& source, std::size_t most, bool quoted);

}  // namespace forestvm::cli
