// See csv.hpp.
#include "cli/io/csv.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <forestvm/internal/formatted.hpp>

#include "cli/io/cell_value.hpp"
#include "cli/io/column_names.hpp"
#include "cli/io/csv_cells.hpp"
#include "cli/io/quote.hpp"
#include "cli/io/separator.hpp"

namespace forestvm::cli {
namespace {

/// The number of cells of a header that are read beyond the model's features to list them in an error, and the number
/// of columns that may be left out.
constexpr std::size_t kMaxListedColumns = std::size_t{1} << 16, kMaxExtraColumns = std::size_t{1} << 20;
template <class Number>
constexpr Number kMissing = std::numeric_limits<Number>::quiet_NaN();

constexpr const char* kExpected = "rows: CSV in UTF-8, NPY, NPZ, libsvm or JSON lines";

struct Magic {
  std::string_view bytes;
  std::string_view what;
};

/// Formats that people pass by mistake. A message that names the format helps more than one about its first odd cell.
/// Each is found by enough bytes that the name of a column, such as PAR1, is not taken for it.
constexpr std::array kOtherFormats = {
    Magic{"PK\x03\x04", "a ZIP archive"},
    Magic{"\x1f\x8b", "a gzip file"},
    Magic{"BZh91AY&SY", "a bzip2 file"},
    Magic{"\xfd\x37zXZ", "an xz file"},
    Magic{"\x28\xb5\x2f\xfd", "a Zstandard file"},
    Magic{"PAR1\x15", "a Parquet file"},
    Magic{std::string_view("ARROW1\0", 7), "an Arrow file"},
    Magic{"\xff\xff\xff\xff", "an Arrow stream"},
    Magic{"\x89HDF", "an HDF5 file"},
    Magic{"Obj\x01", "an Avro file"},
    Magic{std::string_view("SQLite format 3\0", 16), "an SQLite database"},
    Magic{"\xd0\xcf\x11\xe0", "an old Excel file"},
    Magic{std::string_view("\xff\xfe\0\0", 4), "UTF-32 text"},
    Magic{"\xff\xfe", "UTF-16 text"},
    Magic{"\xfe\xff", "UTF-16 text"},
    Magic{"{", "a JSON document"},
    Magic{"<!DOCTYPE", "an HTML page"},
    Magic{"<html", "an HTML page"},
    Magic{"<?xml", "an XML document"},
    Magic{"\x80", "a Python pickle"},
    Magic{"version https://git-lfs", "a pointer of Git LFS instead of the file (git lfs pull)"},
};

/// Refuses an empty input, and other formats.
Result<void> check_start(Source& source) {
  for (const Magic& other : kOtherFormats) {
    FVM_ASSIGN(const bool is_other, source.starts_with(other.bytes));
    if (is_other) return refused(formatted("is {}; expected {}", other.what, kExpected));
  }
  FVM_ASSIGN(const std::string_view start, source.peek(1));
  return start.empty() ? refused(std::string("is empty; expected ") + kExpected) : Result<void>();
}

/// Reads values as Number: float, or double.
template <class Number>
class CsvReader final : public TableReader {
 public:
  CsvReader(Source& source, char separator, const RowForm& form)
      : TableReader(kRowType<Number>), cells_(source, separator), form_(form), cells_per_row_(form.width) {
    columns_ = form.width;
  }

  /// Reads the first line, unless the form says that it is a row. If it turns out to be a row, it is kept for the first
  /// block.
  Result<void> begin() {
    if (form_.header == Header::No) return expect_no_kept_column();
    ColumnNames names(form_);
    FVM_ASSIGN(const FirstLine first, read_first_line(names));
    const bool named = names.are_known();
    // A line of numbers is a row, unless the numbers are the model's feature names, or the line has another number of
    // cells than a row.
    const bool is_header = form_.header == Header::Yes || first.has_name ||
                           (named && (!form_.names.empty() || first.columns != form_.width));
    if (!is_header && names.are_numbers()) return refused("line 1", numbers_or_row());
    if (is_header) return take_header(first, names);
    if (first.columns != form_.width) return wrong_first_width(first.columns, names);
    constexpr std::size_t few = 3;  // fewer numbers from 1 on are a row more often than names
    if (names.count_from_one() && form_.width >= few)
      notice_ = formatted(
          "line 1, which has the numbers from 1 to {}, is taken for a row; --header yes takes it for names",
          form_.width);
    return expect_no_kept_column();
  }

  Result<void> read(std::size_t most, Rows& rows) override {
    begin_block<Number>(rows);
    rows.hashed = !form_.hashed.empty();
    auto& values = rows.numbers<Number>();
    if (most != 0 && !first_row_.empty()) {
      values.swap(first_row_);  // a copy of a wide row would take memory
      first_row_ = std::vector<Number>();
      rows.count = 1;
    }
    for (; rows.count < most && !ended_; ++rows.count) {
      FVM_ASSIGN(const bool more, cells_.next_line());
      FVM_ASSIGN(const bool row, more ? read_row(values, rows.kept) : Result<bool>(false));
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
    bool has_number = false;
    bool has_name = false;  // a cell is not a value, so the line cannot be a row
  };

  Result<FirstLine> read_first_line(ColumnNames& names) {
    FirstLine line;
    first_row_.reserve(form_.width);
    FVM_TRY(cells_.next_line());
    do {
      FVM_ASSIGN(const std::string_view text, cells_.next());
      if (text.find('\0') != std::string_view::npos)
        return refused("line 1", std::string("holds a byte 0, so it is not text; expected ") + kExpected);
      if (cells_.is_blank_line()) return refused("line 1", "is blank; expected a header or a row");
      if (!cells_.is_quoted() && text.find('\r') != std::string_view::npos)
        return refused(
            "line 1",
            "has a carriage return inside: lines end in a line feed, or in both, not in a carriage return alone");
      Number value = 0;
      const bool is_value = read_feature(text, cells_.text(), line.columns, form_, value);
      if (!takes_texts(line.columns)) {  // a text tells nothing about the line
        line.has_name |= !is_value;
        line.has_number |= parse_number<Number>(text).has_value();
      }
      if (++line.columns > form_.width && !goes_on(line)) return too_wide(line, names);
      names.add(text, cells_.text());
      if (line.columns <= form_.width) first_row_.push_back(value);
    } while (!cells_.ends_line());
    return line;
  }

  /// Returns whether to read cells beyond the model's features: in a header that may have extra columns, or for the
  /// error that lists them.
  bool goes_on(const FirstLine& line) const {
    const bool listed = line.has_name && !form_.names.empty();
    const std::size_t extra = line.columns - form_.width;
    return form_.ignores_extra || form_.keep ? extra <= kMaxExtraColumns
                                             : listed && extra < kMaxListedColumns;
  }

  Error too_wide(const FirstLine& line, const ColumnNames& names) const {
    const std::string least = cells_.ends_line() ? "" : "more than ";
    std::string message = formatted("has {}{} columns, the model has {} features{}", least,
                                    line.columns - (least.empty() ? 0 : 1), form_.width, names.index_hint());
    if (form_.ignores_extra && line.columns - form_.width > kMaxExtraColumns)
      message += formatted("; at most {} columns are left out", kMaxExtraColumns);
    return refused(message);
  }

  /// Returns the error for a first line with another number of cells than the model has features.
  Error wrong_first_width(std::size_t columns, const ColumnNames& names) const {
    Error error = wrong_width(columns, form_.width);
    if (columns == 1 && !form_.separator)
      error.message += "; line 1 has no comma, semicolon, tab or blank (--separator names another)";
    error.message += names.index_hint();
    return error;
  }

  Result<void> expect_no_kept_column() const {
    if (!form_.keep) return {};
    return refused("line 1", "is not a header, so there is no column {} to keep", single_quoted(*form_.keep));
  }

  /// Takes the first line as a header: finds out which column is which feature, and which is kept.
  Result<void> take_header(const FirstLine& first, const ColumnNames& names) {
    first_row_.clear();
    cells_per_row_ = first.columns;
    kept_ = names.kept();
    FVM_TRY(names.check_kept());
    if (form_.keep && !kept_)
      return refused("header", "has no column {} to keep", single_quoted(*form_.keep));
    if (names.are_known()) {
      order_ = names.order();
      return {};
    }
    if (!form_.names.empty()) return names.mismatch();
    return take_in_order(first, names);
  }

  /// Takes the columns of a header that names no features in their order, without the one to keep.
  Result<void> take_in_order(const FirstLine& first, const ColumnNames& names) {
    const std::size_t features = first.columns - (kept_ ? 1 : 0);
    if (features != form_.width && form_.ignores_extra)
      return refused("header",
                     "does not tell which columns are extra: the model has no feature names, and the file's "
                     "are not f0, f1, …, Column_0, Column_1, … or 0, 1, …");
    if (features != form_.width) return wrong_first_width(features, names);
    if (first.has_number && form_.header == Header::Auto)
      return refused("line 1",
                     "mixes names and numbers, so it may be a header or a row: say which with --header yes "
                     "or --header no");
    for (std::uint32_t column = 0, feature = 0; kept_ && column < first.columns; ++column)
      order_.push_back(column == *kept_ ? kNoFeature : feature++);
    notice_ =
        "line 1 is skipped as a header: the model has no feature names, so its columns are taken in order";
    return {};
  }

  std::string numbers_or_row() const {
    const std::string what =
        form_.width == 1
            ? "is 0, which may be the column's name as pandas writes it"
            : formatted("has the numbers from 0 to {}, which may be the columns' names as pandas writes them",
                        form_.width - 1);
    return what + ", or a row: say which with --header yes or --header no";
  }

  bool takes_texts(std::size_t feature) const {
    return is_hashed(form_, feature) || named_categories(form_, feature) != nullptr;
  }

  /// Reads a row, and at most one cell more than it should have. Returns false if the line is blank.
  Result<bool> read_row(std::vector<Number>& values, std::vector<std::string>& kept) {
    const std::size_t begin = values.size();
    values.resize(begin + form_.width);
    std::size_t column = 0;
    do {
      FVM_ASSIGN(const std::string_view text, cells_.next());
      if (text.find('\0') != std::string_view::npos)
        return refused(cells_.line_place(),
                       std::string("holds a byte 0, so it is not text; expected ") + kExpected);
      if (cells_.is_blank_line()) {
        values.resize(begin);
        return false;
      }
      if (column == cells_per_row_)
        return refused(cells_.line_place(), "has more cells than {}",
                       expected_cells("the model's ", "the header's "));
      if (column == kept_) kept.emplace_back(cells_.text());
      const std::size_t feature = order_.empty() ? column : order_[column];
      ++column;
      if (feature == kNoFeature) continue;
      if (!read_feature(text, cells_.text(), feature, form_, values[begin + feature]))
        return no_value(cells_.cell_place(), text, feature, form_);
    } while (!cells_.ends_line());
    if (column == cells_per_row_) return true;
    return refused(cells_.line_place(), "has {} cells, {}", column,
                   expected_cells("the model has ", "the header has "));
  }

  /// Returns for messages how many cells a row should have, and whether the model or the header says so.
  std::string expected_cells(const char* of_model, const char* of_header) const {
    if (cells_per_row_ == form_.width) return formatted("{}{} features", of_model, form_.width);
    return formatted("{}{} columns", of_header, cells_per_row_);
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
  std::size_t cells_per_row_;
  std::vector<std::uint32_t> order_;  // the feature of each column; empty: the model's order
  std::optional<std::size_t> kept_;   // the column whose cells are kept as text
  bool ended_ = false;
};

template <class Number>
Result<std::unique_ptr<TableReader>> begun_csv(Source& source, char separator, const RowForm& form) {
  auto reader = std::make_unique<CsvReader<Number>>(source, separator, form);
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

Result<std::unique_ptr<TableReader>> csv_reader(Source& source, const RowForm& form) {
  FVM_TRY(check_start(source));
  char separator = form.separator.value_or('\0');
  if (!form.separator) {
    FVM_ASSIGN(separator, find_separator(source, form.width));
  }
  if (form.wide) return begun_csv<double>(source, separator, form);
  return begun_csv<float>(source, separator, form);
}

void append_number(std::string& to, float value) {
  append_shortest(to, std::isnan(value) ? kMissing<float> : value);
}
void append_number(std::string& to, double value) {
  append_shortest(to, std::isnan(value) ? kMissing<double> : value);
}
void append_number(std::string& to, std::int64_t value) { append_shortest(to, value); }

void append_text(std::string& to, std::string_view cell) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  const bool plain = !cell.empty() && cell.find_first_of(",\"\r\n") == std::string_view::npos &&
                     !is_blank(cell.front()) && !is_blank(cell.back());
  if (plain) {
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
