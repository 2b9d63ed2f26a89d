// See separator.hpp.
#include "cli/io/separator.hpp"

#include <array>
#include <optional>
#include <string>

#include <forestvm/internal/formatted.hpp>

#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

constexpr std::string_view kSeparators = ",;\t";
constexpr std::size_t kTab = 2;
/// The most bytes of the first line that are looked at. A longer line counts as incomplete.
constexpr std::size_t kMaxPeeked = std::size_t{1} << 16;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Follows quotes through a line. A quote opens only at the beginning of a cell, as CsvCells reads it.
class Quotes {
 public:
  /// Takes the next character; returns whether it is part of a quoted text.
  bool inside(char c) {
    if (open_) {
      open_ = c != '"';
      return true;
    }
    open_ = c == '"' && at_start_;
    at_start_ = is_blank(c) || kSeparators.find(c) != std::string_view::npos;
    return open_;
  }

 private:
  bool open_ = false, at_start_ = true;
};

/// Returns the offset of the first line end of `text` from `from` on, given the quotes before.
std::optional<std::size_t> line_end(std::string_view text, std::size_t from, bool quoted, Quotes& quotes) {
  for (std::size_t i = from; i < text.size(); ++i)
    if (!(quotes.inside(text[i]) && quoted) && text[i] == '\n') return i;
  return std::nullopt;
}

/// How often each separator, and blanks between cells, occur in a line.
struct Counts {
  std::array<std::size_t, kSeparators.size()> of{};
  std::size_t blanks = 0;
};

/// Counts the separators of a line. Blanks beside a comma or semicolon do not count, because they are around a cell and
/// not between cells.
Counts count_separators(std::string_view line) {
  Counts counts;
  Quotes quotes;
  char before = '\0';  // the last character that is not a blank
  std::size_t tabs = 0;
  bool blank = false;
  const auto is_mark = [](char c) { return c == ',' || c == ';'; };
  for (const char c : line) {
    const bool quoted = quotes.inside(c);
    if (!quoted && is_blank(c)) {
      blank = true;
      tabs += c == '\t' ? 1U : 0U;
      continue;
    }
    const bool marked = is_mark(before) || (!quoted && is_mark(c));
    if (blank && before != '\0' && !marked) ++counts.blanks;
    if (!marked) counts.of[kTab] += tabs;
    if (!quoted && is_mark(c)) ++counts.of[kSeparators.find(c)];
    before = quoted ? '"' : c;
    blank = false;
    tabs = 0;
  }
  if (!is_mark(before)) counts.of[kTab] += tabs;
  return counts;
}

std::string name_of_separator(char c) { return c == '\t' ? "a tab" : single_quoted(std::string_view(&c, 1)); }

}  // namespace

Result<std::string_view> first_line(Source& source, std::size_t most, bool quoted) {
  Quotes quotes;
  std::string_view seen;
  for (;;) {
    const std::size_t had = seen.size();
    FVM_ASSIGN(seen, source.peek(had + 1));
    if (const auto end = line_end(seen, had, quoted, quotes)) return seen.substr(0, *end);
    if (seen.size() == had || seen.size() >= most) return seen;
  }
}

Result<char> find_separator(Source& source, std::size_t width) {
  FVM_ASSIGN(std::string_view line, first_line(source, kMaxPeeked, true));
  const bool complete = line.size() < kMaxPeeked;
  if (line.ends_with('\r')) line.remove_suffix(1);
  const Counts counts = count_separators(line.substr(0, kMaxPeeked));
  std::string all, fitting;
  for (std::size_t i = 0; i < kSeparators.size(); ++i) {
    if (counts.of[i] != 0) all += kSeparators[i];
    if (complete && counts.of[i] != 0 && counts.of[i] + 1 == width) fitting += kSeparators[i];
  }
  if (all.empty()) return counts.blanks != 0 && width > 1 ? kBlanks : ',';
  if (all.size() == 1) return all.front();
  if (fitting.size() == 1) return fitting.front();
  return refused("line 1",
                 "the separator cannot be told, because the line has both {} and {}: say it with --separator",
                 name_of_separator(all[0]), name_of_separator(all[1]));
}

}  // namespace forestvm::cli
