// Reads the cells of a CSV text (RFC 4180, with any separator) one after the other. Memory holds no more than the
// longest cell.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <forestvm/result.hpp>

#include "cli/io/separator.hpp"
#include "cli/io/source.hpp"

namespace forestvm::cli {

class CsvCells {
 public:
  /// `source` must outlive the object. Blanks around a cell are not part of the cell.
  explicit CsvCells(Source& source, char separator = ',') : source_(source), separator_(separator) {}

  /// Goes to the next line; false at the end of the text. The line before must have been read to its end.
  Result<bool> next_line();

  /// Returns the next cell of the line, without surrounding spaces and quotes; valid until the next call.
  /// Refuses quotes that never close, text after a closing quote, and a cell of more than 1 MiB.
  Result<std::string_view> next();

  /// Returns the current cell with the spaces around it, which are part of a text unless blanks separate cells; valid
  /// until the next call of next().
  std::string_view text() const { return text_; }

  /// Returns whether the cell was in quotes.
  bool is_quoted() const { return quoted_; }

  /// Returns true if the cell is the line's last.
  bool ends_line() const { return ends_line_; }

  /// Returns whether the line has only spaces; call it after reading the first cell. "" is not a blank line.
  bool is_blank_line() const { return column_ == 1 && ends_line_ && !quoted_ && cell_.empty(); }

  /// Returns "line 3", or with cell_place "line 3, column 2". A line that goes on inside quotes has the
  /// number of its first line.
  std::string line_place() const { return "line " + std::to_string(line_); }
  std::string cell_place() const { return line_place() + ", column " + std::to_string(column_); }

 private:
  bool is_space(char c) const { return c == ' ' || (c == '\t' && separator_ != '\t'); }
  bool ends_cell(char c) const { return separator_ == kBlanks ? is_space(c) : c == separator_; }
  Result<bool> fetch();
  Result<bool> has(std::size_t at);
  Result<void> take_plain(std::size_t begin);
  Result<void> take_quoted(std::size_t begin);
  Result<void> skip_blanks(std::size_t& at);
  void finish(std::size_t end);

  Source& source_;
  char separator_;
  std::string_view window_;  // the buffered text, from the start of the cell
  std::size_t taken_ = 0;    // bytes of the window used by the cell and its separator
  std::string_view cell_, text_;
  std::string unquoted_;
  bool quoted_ = false;
  bool ends_line_ = true;
  std::size_t line_ = 0;    // where the current line begins
  std::size_t breaks_ = 0;  // line ends in the current line so far
  std::size_t column_ = 0;  // counted from 1
};

}  // namespace forestvm::cli
