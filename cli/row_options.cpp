// See row_options.hpp.
#include "cli/row_options.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <forestvm/internal/formatted.hpp>

#include "cli/io/cell_value.hpp"
#include "cli/io/quote.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {
namespace {

constexpr std::array<std::string_view, 3> kHeaders = {"auto", "yes", "no"};
constexpr std::array<std::string_view, 6> kFormats = {"auto", "csv", "npy", "npz", "libsvm", "jsonl"};
constexpr std::array<std::string_view, 2> kExtraColumns = {"error", "ignore"};
constexpr std::array<std::string_view, 2> kCategoryCells = {"names", "codes"};
constexpr std::array<std::string_view, 4> kSeparatorNames = {"comma", "semicolon", "tab", "blank"};
constexpr std::string_view kSeparatorCharacters = ",;\t ";

/// Returns the separator of --separator: one of the names, a blank, a tab, or a punctuation mark that begins no comment
/// and is part of no number and no quote.
Result<char> separator_of(const Arguments& arguments) {
  const std::string text = arguments.get("separator");
  if (text.size() != 1) {
    const auto name = arguments.choice("separator", kSeparatorNames, 0);
    if (!name) return usage_error(name.error().message + ", or a character");
    return kSeparatorCharacters[*name];
  }
  const bool marks = std::ispunct(static_cast<unsigned char>(text[0])) != 0;
  if (text == " " || text == "\t" ||
      (marks && std::string_view("\"+-.#").find(text[0]) == std::string_view::npos))
    return text[0];
  return usage_error(
      formatted("--separator {}: expected a blank, a tab, or a punctuation mark other than \" + - . #",
                single_quoted(text)));
}

/// Splits the words of --na. Numbers are refused, because they are compared by value and not as text.
Result<std::vector<std::string>> words_of(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = list.find(',', begin);
    std::string word = list.substr(begin, end - begin);
    const auto number = parse_number<double>(word);
    if (number && !std::isnan(*number))
      return usage_error(
          formatted("--na {}: {} is a number: use --missing", single_quoted(list), single_quoted(word)));
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

constinit const Option kFormatOption = {
    "format",
    '\0',
    "F",
    "format of ROWS: csv, npy, npz, libsvm, jsonl (JSON lines), or auto (default: the content tells)",
    {listed<kFormats>}};
constinit const Option kHeaderOption = {
    "header",
    '\0',
    "H",
    "whether a CSV file's first line is a header: yes, no, or auto (default: if one of its cells cannot be a value)",
    {listed<kHeaders>}};
constinit const Option kSeparatorOption = {
    "separator",
    '\0',
    "S",
    "separator of a CSV file: comma, semicolon, tab, blank (runs of spaces), or a character (default: the first line "
    "tells which of the four)",
    {listed<kSeparatorNames>}};
constinit const Option kNaOption = {
    "na", '\0', "LIST",
    "words for missing values, separated by commas, in place of pandas' (NA, N/A, n/a, null, NULL, None, ...) and ?; "
    "an empty cell and nan are always missing"};
constinit const Option kExtraColumnsOption = {
    "extra-columns",
    '\0',
    "X",
    "named columns that are not features of the model: error (default) or ignore",
    {listed<kExtraColumns>}};
constinit const Option kKeepOption = {
    "keep", '\0', "COLUMN",
    "writes the cells of this named column before the predictions, in CSV; it need not be a feature"};
constinit const Option kArrayOption = {"array", '\0', "NAME", "array of an .npz file that holds several"};
constinit const Option kIndexBaseOption = {
    "index-base", '\0', "N",
    "number of the first feature in a libsvm file: 0 (default, as XGBoost and LightGBM read them) or 1"};
constinit const Option kCategoriesOption = {
    "categories",
    '\0',
    "C",
    "what CSV files and JSON lines hold in columns whose categories have names in the model: names (default) or codes",
    {listed<kCategoryCells>}};
constinit const Option kMissingOption = {
    "missing", '\0', "X",
    "values of rows that equal X, read as the model compares (float32 or float64), are missing, as NaN always is"};

namespace {

/// Returns the program's categories by their names.
std::vector<NamedCategories> categories_of(const Program& program) {
  std::vector<NamedCategories> all;
  for (const CategoryNames& record : program.category_names()) {
    NamedCategories named{record.feature};
    if (record.refuses_unseen == 0) named.unseen = static_cast<float>(record.unseen);
    const std::vector<std::string_view> names = program.category_names(record.feature);
    for (std::size_t code = 0; code < names.size(); ++code) {
      named.codes.emplace(names[code], static_cast<float>(code));
      if (const auto number = parse_number<double>(names[code]))
        named.numbers.emplace(*number, static_cast<float>(code));
    }
    if (named.numbers.size() != names.size()) named.numbers.clear();
    all.push_back(std::move(named));
  }
  return all;
}

/// Returns the features, ascending, that have categories and are not among `named`.
std::vector<std::uint32_t> nameless_of(const Program& program, const std::vector<NamedCategories>& named) {
  std::set<std::uint32_t> features;
  for (const CategoryColumn& column : program.category_columns()) features.insert(column.feature);
  for (const NamedCategories& categories : named) features.erase(categories.feature);
  return {features.begin(), features.end()};
}

}  // namespace

Result<RowForm> row_options(const Arguments& arguments) {
  RowForm form;
  FVM_ASSIGN(const std::size_t header, arguments.choice("header", kHeaders, 0));
  FVM_ASSIGN(const std::size_t format, arguments.choice("format", kFormats, 0));
  FVM_ASSIGN(const std::size_t extra, arguments.choice("extra-columns", kExtraColumns, 0));
  form.header = static_cast<Header>(header);
  form.format = static_cast<RowFormat>(format);
  form.ignores_extra = extra == 1;
  FVM_ASSIGN(const std::size_t cells, arguments.choice("categories", kCategoryCells, 0));
  form.takes_codes = cells == 1;
  if (arguments.has("separator")) {
    FVM_ASSIGN(form.separator, separator_of(arguments));
  }
  if (arguments.has("na")) {
    FVM_ASSIGN(form.missing_words, words_of(arguments.get("na")));
  }
  if (arguments.has("keep")) form.keep = arguments.get("keep");
  if (arguments.has("array")) form.array = arguments.get("array");
  if (arguments.has("index-base")) {
    FVM_ASSIGN(const std::uint64_t base, arguments.number("index-base", 0, 1, 0));
    form.index_base = static_cast<std::uint32_t>(base);
  }
  if (arguments.has("missing")) {
    form.missing = parse_missing(arguments.get("missing"));
    if (!form.missing)
      return usage_error(
          formatted("--missing {}: expected a number", single_quoted(arguments.get("missing"))));
  }
  return form;
}

Result<void> expect_no_row_options(const std::string& path, const RowForm& options) {
  const char* const asked = first_option(options);
  if (asked == nullptr) return {};
  return usage_error(
      formatted("{}: {} holds encoded rows: give it to forestvm encode", asked, single_quoted(path)));
}

Result<void> expect_one_standard_input(const std::string& model, const std::string& rows) {
  if (model != "-" || rows != "-") return {};
  return usage_error("MODEL and ROWS cannot both be standard input");
}

RowForm row_form(const Program& program, const RowForm& options) {
  const ProgramMeta& meta = program.meta();
  RowForm form = options;
  form.width = meta.num_features;
  for (std::uint32_t i = 0; i < meta.num_feature_names; ++i) form.names.push_back(program.feature_name(i));
  const std::string_view trainer = program.text(StringId::Trainer);
  form.underlined = trainer == "lightgbm";
  form.hashed = program.hashed_features();
  if (!form.takes_codes) form.categories = categories_of(program);
  form.nameless = nameless_of(program, form.categories);
  // Rows are read as float64 where the model checks whether a value is a whole number, because float32 could round a
  // fraction to one.
  form.wide =
      meta.row_type == ScalarType::Float64 || !form.hashed.empty() || !program.wide_features().empty();
  form.absent = trainer == "xgboost" ? Absent::Missing : Absent::Zero;
  return form;
}

Result<RowReader> open_rows(const std::string& path, Source source, const RowForm& form) {
  FVM_ASSIGN(RowReader reader, in_file(path, RowReader::open(std::move(source), form)));
  if (!reader.notice().empty())
    std::fprintf(stderr, "forestvm: %s\n", escaped(in_file(path, refused(reader.notice())).text()).c_str());
  return reader;
}

Result<Rows> read_rows(const std::string& path, Source source, const RowForm& form) {
  FVM_ASSIGN(RowReader reader, open_rows(path, std::move(source), form));
  Rows rows;
  FVM_TRY(in_file(path, reader.next(std::numeric_limits<std::size_t>::max(), rows)));
  return rows;
}

}  // namespace forestvm::cli
