// See csv.hpp.
#include "cli/io/csv.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 28;
constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

/// For a decimal number outside float32's range: is it too large (or too small)?
bool is_huge(std::string_view number) {
  const std::size_t e = number.find_first_of("eE");
  const std::string_view digits = number.substr(0, e);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return false;
  const auto place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);  // 1 for 1 to 9.99
  if (e == std::string_view::npos) return place > 0;
  std::string_view power = number.substr(e + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  std::int64_t exponent = 0;
  const auto parsed = std::from_chars(power.data(), power.data() + power.size(), exponent);
  if (parsed.ec == std::errc::result_out_of_range) return !power.starts_with('-');
  return exponent > -place;
}

std::string_view trimmed(std::string_view cell) {
  const std::size_t begin = cell.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return cell.substr(begin, cell.find_last_not_of(" \t") - begin + 1);
}

struct Cell {
  std::string_view raw;  // what lies between the commas
  std::string unquoted;  // used when was_quoted
  bool was_quoted = false;

  std::string_view text() const { return was_quoted ? std::string_view(unquoted) : trimmed(raw); }
};

/// Splits the source into records and a record into cells.
class RecordReader {
 public:
  explicit RecordReader(Source& source) : source_(source) {}

  /// Moves to the next record; false at the end. Its text is valid until the next call.
  Result<bool> next() {
    source_.skip(std::exchange(taken_, 0));
    line_ += std::exchange(lines_taken_, 0);
    std::size_t scanned = 0;
    bool inside_quotes = false;
    for (;;) {
      FVM_ASSIGN(const std::string_view window, source_.peek(scanned + 1));
      if (window.size() == scanned) return at_end(window, inside_quotes);
      const char* const from = window.data() + scanned;
      const auto* const newline = static_cast<const char*>(std::memchr(from, '\n', window.size() - scanned));
      const std::size_t stop =
          newline != nullptr ? static_cast<std::size_t>(newline - window.data()) : window.size();
      // A doubled quote leaves the parity as it was, so counting is enough to know what is inside.
      const auto quotes = std::count(from, window.data() + stop, '"');
      has_quotes_ = (scanned > 0 && has_quotes_) || quotes > 0;
      inside_quotes ^= quotes % 2 != 0;
      scanned = newline != nullptr ? stop + 1 : stop;
      if (scanned > kLongestLine) return refused(place(), "a line longer than 256 MiB");
      if (newline != nullptr) ++lines_taken_;
      if (newline != nullptr && !inside_quotes) return accept(window.substr(0, stop), scanned);
    }
  }

  std::string_view text() const { return text_; }
  std::size_t line() const { return line_; }
  bool blank() const { return text_.find_first_not_of(" \t") == std::string_view::npos; }
  std::string place() const { return "line " + std::to_string(line_); }
  std::string place(std::size_t column) const { return place() + ", column " + std::to_string(column + 1); }

  /// Calls `use(column, cell)` for every cell, until it fails. Result: the number of cells.
  template <class Use>
  Result<std::size_t> cells(Use use) {
    std::size_t column = 0;
    std::size_t begin = 0;
    for (;; ++column) {
      FVM_ASSIGN(const std::size_t end, cell_at(begin, column));
      FVM_TRY(use(column, std::as_const(cell_)));
      if (end == text_.size()) return column + 1;
      begin = end + 1;
    }
  }

 private:
  Result<bool> at_end(std::string_view window, bool inside_quotes) {
    if (inside_quotes) return refused(place(), "a quoted cell never ends");
    return window.empty() ? Result<bool>(false) : accept(window, window.size());
  }

  bool accept(std::string_view record, std::size_t taken) {
    if (record.ends_with('\r')) record.remove_suffix(1);
    text_ = record;
    taken_ = taken;
    return true;
  }

  /// Sets cell_ to the cell that begins at `begin`; the place of the comma, or the size, that ends it.
  Result<std::size_t> cell_at(std::size_t begin, std::size_t column) {
    cell_.was_quoted = has_quotes_ && trimmed(text_.substr(begin)).starts_with('"');
    if (!cell_.was_quoted) {
      const std::size_t end = std::min(text_.find(',', begin), text_.size());
      cell_.raw = text_.substr(begin, end - begin);
      return end;
    }
    cell_.unquoted.clear();
    std::size_t at = text_.find('"', begin) + 1;
    for (;; ++at) {
      if (at >= text_.size()) return refused(place(column), "a quoted cell never ends");
      if (text_[at] == '"' && (at + 1 >= text_.size() || text_[at + 1] != '"')) break;
      if (text_[at] == '"') ++at;
      cell_.unquoted += text_[at];
    }
    const std::size_t end = std::min(text_.find(',', at + 1), text_.size());
    if (!trimmed(text_.substr(at + 1, end - at - 1)).empty())
      return refused(place(column), "text after the closing quote of a cell");
    return end;
  }

  Source& source_;
  std::string_view text_;
  std::size_t taken_ = 0;  // bytes of this record with its line end
  std::size_t line_ = 1;
  std::size_t lines_taken_ = 0;
  bool has_quotes_ = false;
  Cell cell_;
};

struct Magic {
  std::string_view bytes;
  std::string_view what;
};

/// What people pass by mistake, better refused by its name than by its first odd cell.
constexpr std::array kOtherFormats = {
    Magic{"PK\x03\x04", "a ZIP archive (.npz or .xlsx?)"},
    Magic{"\x1f\x8b", "a gzip file"},
    Magic{"PAR1", "a Parquet file"},
    Magic{"ARROW1", "an Arrow file"},
    Magic{"\x89HDF", "an HDF5 file"},
    Magic{"\xff\xfe", "UTF-16 text"},
    Magic{"\xfe\xff", "UTF-16 text"},
    Magic{"{", "a JSON document"},
};

Result<void> skip_start(Source& source) {
  FVM_ASSIGN(const std::string_view start, source.peek(8));
  if (start.empty()) return refused("", "is empty; expected an NPY array or CSV rows");
  for (const Magic& other : kOtherFormats)
    if (start.starts_with(other.bytes))
      return refused("", "is " + std::string(other.what) + "; expected an NPY array or CSV rows in UTF-8");
  if (start.starts_with("\xef\xbb\xbf")) source.skip(3);
  return {};
}

/// Are they the same, in whatever order?
bool same_names(std::span<const std::string> some, std::span<const std::string> others) {
  if (others.empty() || some.size() != others.size()) return false;
  std::vector<std::string_view> left(some.begin(), some.end());
  std::vector<std::string_view> right(others.begin(), others.end());
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  return left == right;
}

/// After a blank line: only blank ones may follow.
Result<void> expect_blank_rest(RecordReader& record) {
  const std::string place = record.place();
  for (;;) {
    FVM_ASSIGN(const bool more, record.next());
    if (!more) return {};
    if (!record.blank())
      return refused(place, "a blank line between rows (a missing value in a one-column file is \"\")");
  }
}

class CsvReader final : public TableReader {
 public:
  explicit CsvReader(Source& source) : record_(source) {}

  /// Reads the first record: names, or a row that is kept for the first block.
  Result<void> begin(std::span<const std::string> known_names) {
    FVM_ASSIGN(const bool any, record_.next());
    if (!any || record_.blank()) return refused("line 1", "is blank; expected a header or a row");
    bool has_number = false;
    bool has_name = false;
    const auto use = [&](std::size_t, const Cell& cell) -> Result<void> {
      const std::string_view text = cell.text();
      const auto number = parse_float(text);
      header_.names.emplace_back(text);
      first_row_.push_back(number.value_or(kMissing));
      has_number |= number.has_value();
      has_name |= !number && !text.empty();
      return {};
    };
    FVM_ASSIGN(header_.columns, record_.cells(use));
    const bool is_header = has_name || same_names(header_.names, known_names);
    if (is_header) {
      first_row_.clear();
      header_.mixed_header = has_number;
    } else {
      header_.names.clear();
    }
    return {};
  }

  Result<std::size_t> read(std::size_t most, std::vector<float>& values) override {
    std::size_t rows = 0;
    if (most != 0 && !first_row_.empty()) {
      values.insert(values.end(), first_row_.begin(), first_row_.end());
      first_row_.clear();
      rows = 1;
    }
    for (; rows < most && !ended_; ++rows) {
      FVM_ASSIGN(const bool more, record_.next());
      ended_ = !more;
      if (more && record_.blank()) {
        FVM_TRY(expect_blank_rest(record_));
        ended_ = true;
      }
      if (ended_) break;
      FVM_TRY(read_row(values));
    }
    return rows;
  }

 private:
  Result<void> read_row(std::vector<float>& values) {
    const auto use = [&](std::size_t column, const Cell& cell) -> Result<void> {
      const std::string_view text = cell.text();
      const auto number = text.empty() ? kMissing : parse_float(text);
      if (!number)
        return refused(record_.place(column),
                       in_quotes(text) + " is not a number (a missing value is an empty cell or nan)");
      if (column < header_.columns) values.push_back(*number);
      return {};
    };
    FVM_ASSIGN(const std::size_t count, record_.cells(use));
    if (count == header_.columns) return {};
    return refused(record_.place(), "has " + std::to_string(count) + " cells, the first line has " +
                                        std::to_string(header_.columns));
  }

  RecordReader record_;
  std::vector<float> first_row_;
  bool ended_ = false;
};

template <class T>
void append_shortest(std::string& to, T value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  to.append(text.data(), end);
}

}  // namespace

std::optional<float> parse_float(std::string_view text) {
  const bool plus = text.starts_with('+');
  if (plus) text.remove_prefix(1);
  if (text.empty() || (plus && text.front() == '-')) return std::nullopt;
  if (text.back() == ')') return std::nullopt;  // from_chars knows nan(…), no reader of CSV does
  float value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || code == std::errc::invalid_argument) return std::nullopt;
  if (code == std::errc::result_out_of_range) {
    const bool negative = text.front() == '-';
    value = is_huge(negative ? text.substr(1) : text) ? std::numeric_limits<float>::infinity() : 0.0F;
    if (negative) value = -value;
  }
  return value;
}

Result<std::unique_ptr<TableReader>> csv_reader(Source& source, std::span<const std::string> known_names) {
  FVM_TRY(skip_start(source));
  auto reader = std::make_unique<CsvReader>(source);
  FVM_TRY(reader->begin(known_names));
  return std::unique_ptr<TableReader>(std::move(reader));
}

void append_number(std::string& to, float value) {
  append_shortest(to, std::isnan(value) ? kMissing : value);
}
void append_number(std::string& to, double value) {
  append_shortest(to, std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value);
}
void append_number(std::string& to, std::int64_t value) { append_shortest(to, value); }

void append_text(std::string& to, std::string_view cell) {
  const bool plain = cell.find_first_of(",\"\r\n") == std::string_view::npos && trimmed(cell) == cell;
  if (plain && !cell.empty()) {
    to += cell;
    return;
  }
  to += '"';
  for (const char c : cell) {
    if (c == '"') to += '"';
    to += c;
  }
  to += '"';
}

}  // namespace forestvm::cli
