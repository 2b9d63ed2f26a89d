// The character between the cells of a text table, found from its first line.
#pragma once

#include <cstddef>
#include <string_view>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"

namespace forestvm::cli {

/// Stands for runs of spaces and tabs. Any other separator is one character.
inline constexpr char kBlanks = ' ';

/// Returns the separator of a table whose rows should have `width` cells: a comma, semicolon or tab if the first line
/// has only one of these outside quotes; kBlanks if it has none of them but blanks between cells, and the width is
/// above 1; a comma if the line is one cell. If the line has several of them, it is the one that separates `width`
/// cells. Refuses a line where that does not tell.
Result<char> find_separator(Source& source, std::size_t width);

/// Returns the first line of the input without taking it: up to its end, or at least `most` bytes of a longer one. A
/// line goes on inside quotes if `quoted`. Reads no more than this needs, because the next line may not exist yet.
Result<std::string_view> first_line(Source& source, std::size_t most, bool quoted);

}  // namespace forestvm::cli
