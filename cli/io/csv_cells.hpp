// The cells of a CSV text (RFC 4180, commas), one after the other, in as much memory as the longest of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <forestvm/result.hpp>

#include "cli/io/source.hpp"

namespace forestvm::cli {

class CsvCells {
 public:
  /// `source` must outlive it.
  explicit CsvCells(Source& source) : source_(source) {}

  /// Goes to the next line; false at the end of the text. The line before must have been read to its end.
  Result<bool> next_line();

  /// The next cell of the line, without the spaces around it or its quotes; good until the next call.
  /// Refused: quotes that never close, text after a closing quote, a cell of more than 1 MiB.
  Result<std::string_view> next();

  /// Whether the cell is the line's last.
  bool ends_line() const { return ends_line_; }

  /// Whether the line is empty but for spaces, once its first cell has been read: "" is no blank line.
  bool is_blank_line() const { return column_ == 1 && ends_line_ && !quoted_ && cell_.empty(); }

  /// "line 3", and "line 3, column 2" of the cell. A line that goes on inside quotes counts from its
  /// beginning.
  std::string line_place() const { return "line " + std::to_string(line_); }
  std::string cell_place() const { return line_place() + ", column " + std::to_string(column_); }

 private:
  Result<bool> fetch();
  Result<void> take_plain(std::size_t begin);
  Result<void> take_quoted(std::size_t begin);
  void finish(std::size_t end);

  Source& source_;
  std::string_view window_;  // what is buffered, from the cell's beginning
  std::size_t taken_ = 0;    // of the window, by the cell and what ends it
  std::string_view cell_;
  std::string unquoted_;
  bool quoted_ = false;
  bool ends_line_ = true;
  std::size_t line_ = 0;    // on which the current line begins
  std::size_t breaks_ = 0;  // ends of lines in it so far
  std::size_t column_ = 0;  // counted from 1
};

}  // namespace forestvm::cli
