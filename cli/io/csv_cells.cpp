// See csv_cells.hpp.
#include "cli/io/csv_cells.hpp"

#include <utility>

namespace forestvm::cli {
namespace {

constexpr std::size_t kMaxCellBytes = std::size_t{1} << 20;

}  // namespace

/// Returns whether the window has a character at `at`, after fetching more if it must.
Result<bool> CsvCells::has(std::size_t at) { return at < window_.size() ? Result<bool>(true) : fetch(); }

/// Extends the window; false at the end of the text.
Result<bool> CsvCells::fetch() {
  const std::size_t had = window_.size();
  if (had > kMaxCellBytes) return refused(cell_place(), "a cell of more than 1 MiB");
  FVM_ASSIGN(window_, source_.peek(had + 1));
  return window_.size() > had;
}

Result<bool> CsvCells::next_line() {
  source_.skip(std::exchange(taken_, 0));
  FVM_ASSIGN(window_, source_.peek(1));
  line_ += std::exchange(breaks_, 0) + (line_ == 0 ? 1 : 0);
  column_ = 0;
  return !window_.empty();
}

Result<std::string_view> CsvCells::next() {
  source_.skip(taken_);
  window_.remove_prefix(std::exchange(taken_, 0));
  ++column_;
  std::size_t begin = 0;
  for (;; ++begin) {
    if (begin == window_.size()) {
      FVM_ASSIGN(const bool more, fetch());
      if (!more) break;
    }
    if (!is_space(window_[begin])) break;
  }
  quoted_ = begin < window_.size() && window_[begin] == '"';
  FVM_TRY(quoted_ ? take_quoted(begin + 1) : take_plain(begin));
  return cell_;
}

Result<void> CsvCells::take_plain(std::size_t begin) {
  const char separator = separator_, other = separator_ == kBlanks ? '\t' : separator_;
  std::size_t end = begin;
  for (;;) {
    while (end < window_.size() && window_[end] != separator && window_[end] != other && window_[end] != '\n')
      ++end;
    if (end < window_.size()) break;
    FVM_ASSIGN(const bool more, fetch());
    if (!more) break;
  }
  std::size_t next = end;
  if (separator_ == kBlanks) FVM_TRY(skip_blanks(next));
  finish(next);
  std::size_t last = end - (ends_line_ && end > begin && window_[end - 1] == '\r' ? 1 : 0);
  text_ = separator_ == kBlanks ? window_.substr(begin, last - begin) : window_.substr(0, last);
  while (last > begin && is_space(window_[last - 1])) --last;
  cell_ = window_.substr(begin, last - begin);
  return {};
}

Result<void> CsvCells::take_quoted(std::size_t begin) {
  unquoted_.clear();
  std::size_t at = begin;
  for (;; ++at) {
    FVM_ASSIGN(const bool more, has(at));
    if (!more) return refused(cell_place(), "a quoted cell never ends");
    if (window_[at] == '\n') ++breaks_;
    if (window_[at] == '"') {
      ++at;
      FVM_ASSIGN(const bool after, has(at));
      if (!after || window_[at] != '"') break;
    }
    unquoted_ += window_[at];
  }
  bool carriage_return = false;
  for (;; ++at) {
    FVM_ASSIGN(const bool more, has(at));
    if (!more || window_[at] == '\n' || (ends_cell(window_[at]) && !carriage_return)) break;
    if (carriage_return || (window_[at] != '\r' && !is_space(window_[at])))
      return refused(cell_place(), "text after the closing quote of a cell");
    carriage_return = window_[at] == '\r';
  }
  if (separator_ == kBlanks) FVM_TRY(skip_blanks(at));
  finish(at);
  cell_ = text_ = unquoted_;
  return {};
}

/// Moves `at` past blanks, to the next cell or the end of the line. Blanks at the end of a line do not begin a cell.
Result<void> CsvCells::skip_blanks(std::size_t& at) {
  for (;; ++at) {
    FVM_ASSIGN(const bool more, has(at));
    if (!more) return {};
    if (!is_space(window_[at])) break;
  }
  if (window_[at] != '\r') return {};
  FVM_ASSIGN(const bool after, has(at + 1));
  if (!after || window_[at + 1] == '\n') ++at;
  return {};
}

/// Ends the cell. `end` is the offset of the separator, of the end of the line or of the end of the text; or, if blanks
/// separate cells, where the next cell begins.
void CsvCells::finish(std::size_t end) {
  const bool at_end = end == window_.size();
  ends_line_ = at_end || window_[end] == '\n';
  if (ends_line_) ++breaks_;
  const bool takes_next = !at_end && (ends_line_ || separator_ != kBlanks);
  taken_ = end + (takes_next ? 1 : 0);
}

}  // namespace forestvm::cli
