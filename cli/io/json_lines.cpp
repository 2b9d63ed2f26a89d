// See json_lines.hpp.
#include "cli/io/json_lines.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forestvm/internal/city_hash.hpp>
#include <forestvm/internal/formatted.hpp>

#include "cli/io/cell_value.hpp"
#include "cli/io/column_names.hpp"
#include "cli/io/quote.hpp"
#include "cli/io/separator.hpp"

namespace forestvm::cli {
namespace {

/// Begins the strings that with_quoted_constants makes, in JSON and in the text that is read from it.
constexpr const char* kWrittenMark = "\\u0000";
constexpr char kConstantMark = '\0';

/// Puts quotes around NaN, Infinity and -Infinity, which Python's json writes although JSON does not have them, and the
/// mark before them that tells them from strings.
std::string with_quoted_constants(std::string_view line) {
  std::string out;
  bool in_string = false;
  while (!line.empty()) {
    std::size_t size = in_string && line.front() == '\\' ? std::min<std::size_t>(2, line.size()) : 1;
    if (line.front() == '"') in_string = !in_string;
    bool found = false;
    for (const std::string_view constant : {"NaN", "Infinity", "-Infinity"})
      if (!in_string && line.starts_with(constant)) {
        size = constant.size();
        found = true;
      }
    if (found) out.append("\"").append(kWrittenMark);
    out.append(line.substr(0, size)).append(found ? "\"" : "");
    line.remove_prefix(size);
  }
  return out;
}

/// Takes the events of a line's JSON and puts the values into a row.
template <class Number>
class RowEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  RowEvents(const RowForm& form, const FeatureNames& features)
      : form_(form), features_(features), seen_(form.width) {}

  /// Begins a row at the end of `values`. `kept` gets the cell of the column to keep.
  void begin_row(std::vector<Number>& values, std::vector<std::string>& kept) {
    values_ = &values;
    kept_ = &kept;
    begin_ = values.size();
    values.resize(begin_ + form_.width);
    ++row_;
    count_ = depth_ = 0;
    is_object_ = has_kept_ = false;
    error_.reset();
  }

  /// Returns the error of the row that was read, without the number of its line; nothing if the row is right.
  std::optional<Error> error() const {
    if (error_) return error_;
    if (!is_object_ && count_ != form_.width)
      return refused(formatted("has {} values, the model has {} features", count_, form_.width));
    if (is_object_ && count_ != form_.width) return lacking();
    if (form_.keep && !has_kept_) return refused(formatted("has no {} to keep", single_quoted(*form_.keep)));
    return std::nullopt;
  }

  bool null() override { return take("", std::nullopt); }
  // CatBoost takes a truth value among texts for a number.
  bool boolean(bool value) override { return take(value ? "true" : "false", value ? "1" : "0"); }
  bool number_integer(number_integer_t value) override { return take_integer(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return take_integer(std::to_string(value)); }
  // Reads the number's text as a cell of CSV, so that equal tables give equal rows.
  bool number_float(number_float_t value, const string_t& text) override {
    if (form_.hashed.empty() || std::abs(value) > kMaxCategoryNumber || value != std::trunc(value))
      return take(text, std::nullopt);
    return take(text, std::to_string(static_cast<std::int64_t>(value)));
  }
  bool string(string_t& text) override {
    if (text.starts_with(kConstantMark)) return take(std::string_view(text).substr(1), std::nullopt);
    return take(text, text);
  }
  bool binary(binary_t& /*bytes*/) override { return false; }
  bool key(string_t& name) override {
    name_ = name;
    feature_ = features_.find(name);
    keeps_ = form_.keep && name == *form_.keep;
    if (feature_ == kNoFeature && !keeps_ && !form_.ignores_extra)
      return fail(
          formatted("has {}, which is not a feature of the model; --extra-columns ignore leaves it out",
                    single_quoted(name)));
    return true;
  }
  bool start_object(std::size_t /*count*/) override {
    is_object_ |= depth_ == 0;
    return start();
  }
  bool start_array(std::size_t /*count*/) override {
    if (depth_ == 0 && form_.keep)
      return fail("is an array without names, so it has no " + single_quoted(*form_.keep));
    return start();
  }
  bool end_object() override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    constexpr int too_large = 406;
    error_ = refused(formatted("column {}", position),
                     error.id == too_large
                         ? "ends a number that float64 cannot represent"
                         : "is not a JSON object or array on one line (a missing value is null)");
    return false;
  }

 private:
  bool fail(std::string_view message) {
    error_ = refused(message);
    return false;
  }

  bool start() {
    if (depth_++ == 0) return true;
    const bool has_all_rows = !is_object_ && count_ == 0;
    return fail(
        place_of_value() + " is an object or array, expected a number" +
        (has_all_rows
             ? "; each row has a line of its own, as pandas writes them with to_json(orient=\"records\", "
               "lines=True)"
             : ""));
  }

  std::string place_of_value() const {
    return is_object_ ? single_quoted(name_) : formatted("value {}", count_ + 1);
  }

  bool take_integer(const std::string& text) { return take(text, text); }

  /// Takes a value, given the text of a cell of CSV for it, and the category that it is where a feature's values are
  /// texts; nothing if it is none.
  bool take(std::string_view text, std::optional<std::string_view> category) {
    if (depth_ == 0) return fail("is a single value, expected an object or array");
    if (is_object_ && keeps_ && std::exchange(has_kept_, true))
      return fail(formatted("has {} twice", single_quoted(name_)));
    if (is_object_ && keeps_) kept_->emplace_back(text);
    const std::size_t feature = is_object_ ? feature_ : count_;
    if (feature == kNoFeature) return true;
    if (feature >= form_.width)
      return fail(formatted("has more values than the model's {} features", form_.width));
    if (std::exchange(seen_[feature], row_) == row_)
      return fail(formatted("has {} twice", single_quoted(name_)));
    const bool hashed = is_hashed(form_, feature);
    if (hashed && !category) {
      error_ =
          refused(place_of_value(),
                  "is no category: the model compares this feature as text, for which whole numbers stand by "
                  "their decimal text");
      return false;
    }
    if (hashed) text = *category;
    if (!read_feature(text, text, feature, form_, (*values_)[begin_ + feature])) {
      error_ = no_value(place_of_value(), text, feature, form_);
      return false;
    }
    ++count_;
    return true;
  }

  Error lacking() const {
    for (std::size_t feature = 0; feature < form_.width; ++feature)
      if (seen_[feature] != row_)
        return refused(
            formatted("lacks the feature {} (a missing value is null)",
                      form_.names.empty() ? formatted("f{}", feature) : single_quoted(form_.names[feature])));
    return refused("lacks features of the model");
  }

  const RowForm& form_;
  const FeatureNames& features_;
  std::vector<std::uint64_t> seen_;  // the last row that had each feature, counted from 1
  std::uint64_t row_ = 0;
  std::vector<Number>* values_ = nullptr;
  std::vector<std::string>* kept_ = nullptr;
  std::size_t begin_ = 0, count_ = 0, depth_ = 0;
  bool is_object_ = false, has_kept_ = false;
  std::string name_;  // name of the next value, to which feature_ and keeps_ belong
  std::uint32_t feature_ = kNoFeature;
  bool keeps_ = false;
  std::optional<Error> error_;
};

template <class Number>
class JsonLinesReader final : public TableReader {
 public:
  JsonLinesReader(Source& source, const RowForm& form)
      : TableReader(kRowType<Number>),
        source_(source),
        form_(form),
        features_(form_),
        events_(form_, features_) {
    columns_ = form.width;
  }

  Result<void> begin() const {
    if (const auto name = features_.ambiguous())
      return refused("the model has two features named " + single_quoted(*name));
    return {};
  }

  Result<void> read(std::size_t most, Rows& rows) override {
    begin_block<Number>(rows);
    rows.hashed = !form_.hashed.empty();
    const std::size_t longest = kMaxLineBytes + form_.width * kMaxValueBytes;
    while (rows.count < most) {
      FVM_ASSIGN(const std::string_view line, first_line(source_, longest, false));
      FVM_ASSIGN(const std::string_view rest, source_.peek(line.size() + 1));
      ++line_;
      if (rest.empty()) break;
      const std::size_t size = std::min(line.size(), rest.size());
      if (size >= longest) return refused(place(), "is longer than {} bytes", longest);
      const std::string_view text = rest.substr(0, size);
      if (text.find_first_not_of(" \t\r") != std::string_view::npos) {
        FVM_TRY(read_row(text, rows));
        ++rows.count;
      }
      source_.skip(std::min(size + 1, rest.size()));
    }
    return {};
  }

 private:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20, kMaxValueBytes = std::size_t{1} << 12;

  std::string place() const { return formatted("line {}", line_); }

  Result<void> read_row(std::string_view text, Rows& rows) {
    events_.begin_row(rows.numbers<Number>(), rows.kept);
    std::string quoted;
    if (text.find("NaN") != std::string_view::npos || text.find("Infinity") != std::string_view::npos)
      text = quoted = with_quoted_constants(text);
    // Passes the base class, because there would otherwise be a parser for each type of number.
    nlohmann::json_sax<nlohmann::json>* const events = &events_;
    nlohmann::json::sax_parse(text.data(), text.data() + text.size(), events);
    std::optional<Error> error = events_.error();
    if (!error) return {};
    error->where = place() + (error->where.empty() ? "" : ", " + error->where);
    return *error;
  }

  Source& source_;
  RowForm form_;
  FeatureNames features_;
  RowEvents<Number> events_;
  std::uint64_t line_ = 0;
};

template <class Number>
Result<std::unique_ptr<TableReader>> begun_json_lines(Source& source, const RowForm& form) {
  auto reader = std::make_unique<JsonLinesReader<Number>>(source, form);
  FVM_TRY(reader->begin());
  return std::unique_ptr<TableReader>(std::move(reader));
}

}  // namespace

Result<std::unique_ptr<TableReader>> json_lines_reader(Source& source, const RowForm& form) {
  return form.wide ? begun_json_lines<double>(source, form) : begun_json_lines<float>(source, form);
}

}  // namespace forestvm::cli
