// See csv.hpp.
#include "cli/io/csv.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <forestvm/internal/city_hash.hpp>

#include "cli/io/column_names.hpp"
#include "cli/io/csv_cells.hpp"
#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

/// The number of cells of a header that are read beyond the model's features.
constexpr std::size_t kMaxExtraColumns = std::size_t{1} << 16;
template <class Number>
constexpr Number kMissing = std::numeric_limits<Number>::quiet_NaN();

/// Returns whether a decimal number outside float32's range is too large, not too small.
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
  // Numbers from 0.1 to 10 never come here, so it does not matter which side they count to.
  return exponent > -place;
}

std::string_view trimmed(std::string_view cell) {
  const std::size_t begin = cell.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return cell.substr(begin, cell.find_last_not_of(" \t") - begin + 1);
}

struct Magic {
  std::string_view bytes;
  std::string_view what;
};

/// Formats that people pass by mistake: a message that names the format is better than one about its first
/// odd cell.
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

/// Returns the number that a text stands for, rounded to nearest; ±inf or ±0 beyond the range.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  const bool plus = text.starts_with('+');
  if (plus) text.remove_prefix(1);
  if (text.empty() || (plus && text.front() == '-')) return std::nullopt;
  if (text.back() == ')') return std::nullopt;  // from_chars accepts nan(…), no reader of CSV does
  Number value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || code == std::errc::invalid_argument) return std::nullopt;
  if (code == std::errc::result_out_of_range) {
    const bool negative = text.front() == '-';
    value = is_huge(negative ? text.substr(1) : text) ? std::numeric_limits<Number>::infinity() : Number{0};
    if (negative) value = -value;
  }
  return value;
}

/// Reads values as Number: float, or double.
template <class Number>
class CsvReader final : public TableReader {
 public:
  CsvReader(Source& source, const RowForm& form)
      : TableReader(kRowType<Number>), cells_(source), form_(form) {
    columns_ = form.width;
  }

  /// Reads the first line unless all lines are rows: names, or a row that is kept for the first block.
  Result<void> begin() {
    if (form_.header == Header::No) return {};
    ColumnNames names(form_);
    FVM_ASSIGN(const FirstLine first, read_first_line(names));
    const bool named = names.are_known();
    const bool is_header = form_.header == Header::Yes || first.has_name || (named && !form_.names.empty());
    if (!is_header && names.are_numbers()) return refused("line 1", numbers_or_row());
    if (!named && is_header && !form_.names.empty()) return names.mismatch();
    if (first.columns != form_.width) return wrong_width(first.columns, form_.width);
    if (!is_header) return first.wrong_number ? *first.wrong_number : Result<void>();
    first_row_.clear();
    if (named) {
      order_ = names.order();
      return {};
    }
    if (first.has_number && form_.header == Header::Auto)
      return refused("line 1",
                     "mixes names and numbers, so it may be a header or a row: say which with --header yes "
                     "or --header no");
    notice_ =
        "line 1 is skipped as a header: the model has no feature names, so its columns are taken in order";
    return {};
  }

  Result<void> read(std::size_t most, Rows& rows) override {
    begin_block<Number>(rows);
    rows.hashed = !form_.hashed.empty();
    auto& values = rows.numbers<Number>();
    if (most != 0 && !first_row_.empty()) {
      values.swap(first_row_);  // no second copy of a wide row
      first_row_ = std::vector<Number>();
      rows.count = 1;
    }
    for (; rows.count < most && !ended_; ++rows.count) {
      FVM_ASSIGN(const bool more, cells_.next_line());
      FVM_ASSIGN(const bool row, more ? read_row(values) : Result<bool>(false));
      ended_ = !row;
      if (more && !row) FVM_TRY(expect_blank_rest());
      if (ended_) break;
    }
    return {};
  }

 private:
  /// The first line, read as a header and as a row at once, because only its end tells which it is.
  struct FirstLine {
    std::size_t columns = 0;
    bool has_number = false, has_name = false;
    std::optional<Error> wrong_number;  // error of the line if it is a row
  };

  Result<FirstLine> read_first_line(ColumnNames& names) {
    FirstLine line;
    first_row_.reserve(form_.width);
    FVM_TRY(cells_.next_line());
    do {
      FVM_ASSIGN(const std::string_view text, cells_.next());
      if (cells_.is_blank_line()) return refused("line 1", "is blank; expected a header or a row");
      const bool is_text = is_hashed(line.columns);  // it tells nothing about the line
      const auto number = parse_number<Number>(text);
      line.has_number |= !is_text && number.has_value();
      line.has_name |= !is_text && !number && !text.empty();
      if (++line.columns > form_.width && !goes_on(line)) return too_wide(line);
      names.add(text);
      const auto value = value_of(text, line.columns - 1);
      if (!value && !line.wrong_number) line.wrong_number = value.error();
      if (line.columns <= form_.width) first_row_.push_back(value ? *value : kMissing<Number>);
    } while (!cells_.ends_line());
    return line;
  }

  /// Returns whether to read cells beyond the model's features: in a header, for the error that lists them.
  bool goes_on(const FirstLine& line) const {
    return line.has_name && !form_.names.empty() && line.columns - form_.width < kMaxExtraColumns;
  }

  Error too_wide(const FirstLine& line) const {
    const std::string least = cells_.ends_line() ? "" : "more than ";
    return refused("", "has " + least + std::to_string(line.columns - (least.empty() ? 0 : 1)) +
                           " columns, the model has " + std::to_string(form_.width) + " features");
  }

  std::string numbers_or_row() const {
    const std::string what = form_.width == 1
                                 ? "is 0, which may be the column's name as pandas writes it"
                                 : "has the numbers from 0 to " + std::to_string(form_.width - 1) +
                                       ", which may be the columns' names as pandas writes them";
    return what + ", or a row: say which with --header yes or --header no";
  }

  bool is_hashed(std::size_t feature) const {
    return std::binary_search(form_.hashed.begin(), form_.hashed.end(), feature);
  }

  /// Returns the value of the current cell, which is of this feature.
  Result<Number> value_of(std::string_view text, std::size_t feature) const {
    if (is_hashed(feature)) return static_cast<Number>(category_code(cells_.text()));
    if (text.empty()) return kMissing<Number>;
    // Beside codes, which need float64, numbers are float32: rounded twice, some would be others.
    if (!form_.hashed.empty() && !std::is_same_v<Number, float>) return number_of<float>(text);
    return number_of<Number>(text);
  }

  /// Returns the number in the current cell, as Compared: in this type the model compares it.
  template <class Compared>
  Result<Number> number_of(std::string_view text) const {
    const auto number = parse_number<Compared>(text);
    if (!number)
      return refused(cells_.cell_place(),
                     in_quotes(text) + " is not a number (a missing value is an empty cell or nan)");
    if (form_.missing && *number == form_.missing->as<Compared>()) return kMissing<Number>;
    return static_cast<Number>(*number);
  }

  /// Reads a row, at most one cell beyond the model's features; false if the line is blank.
  Result<bool> read_row(std::vector<Number>& values) {
    const std::size_t begin = values.size();
    values.resize(begin + form_.width);
    std::size_t column = 0;
    do {
      FVM_ASSIGN(const std::string_view text, cells_.next());
      if (cells_.is_blank_line()) {
        values.resize(begin);
        return false;
      }
      if (column == form_.width)
        return refused(cells_.line_place(),
                       "has more cells than the model's " + std::to_string(form_.width) + " features");
      const std::size_t feature = order_.empty() ? column : order_[column];
      FVM_ASSIGN(values[begin + feature], value_of(text, feature));
      ++column;
    } while (!cells_.ends_line());
    if (column == form_.width) return true;
    return refused(cells_.line_place(), "has " + std::to_string(column) + " cells, the model has " +
                                            std::to_string(form_.width) + " features");
  }

  /// Checks, after a blank line, that only blank lines follow.
  Result<void> expect_blank_rest() {
    const std::string place = cells_.line_place();
    for (;;) {
      FVM_ASSIGN(const bool more, cells_.next_line());
      if (!more) return {};
      FVM_TRY(cells_.next());
      if (!cells_.is_blank_line())
        return refused(place, "a blank line between rows (a missing value in a one-column file is \"\")");
    }
  }

  CsvCells cells_;
  RowForm form_;
  std::vector<Number> first_row_;
  std::vector<std::uint32_t> order_;  // the feature of each column; empty: the model's order
  bool ended_ = false;
};

template <class Number>
Result<std::unique_ptr<TableReader>> begun(Source& source, const RowForm& form) {
  auto reader = std::make_unique<CsvReader<Number>>(source, form);
  FVM_TRY(reader->begin());
  return std::unique_ptr<TableReader>(std::move(reader));
}

template <class T>
void append_shortest(std::string& to, T value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  to.append(text.data(), end);
}

}  // namespace

std::optional<float> parse_float(std::string_view text) { return parse_number<float>(text); }

std::optional<MissingNumber> parse_missing(std::string_view text) {
  const auto narrow = parse_number<float>(text);
  const auto wide = parse_number<double>(text);
  if (!narrow || !wide) return std::nullopt;
  return MissingNumber{*narrow, *wide};
}

Result<std::unique_ptr<TableReader>> csv_reader(Source& source, const RowForm& form) {
  FVM_TRY(skip_start(source));
  if (form.wide) return begun<double>(source, form);
  return begun<float>(source, form);
}

void append_number(std::string& to, float value) {
  append_shortest(to, std::isnan(value) ? kMissing<float> : value);
}
void append_number(std::string& to, double value) {
  append_shortest(to, std::isnan(value) ? kMissing<double> : value);
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
