// See row_options.hpp.
#include "cli/row_options.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string_view>
#include <utility>

#include "cli/io/csv.hpp"
#include "cli/io/quote.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {
namespace {

constexpr std::array<std::string_view, 3> kHeaders = {"auto", "yes", "no"};

}  // namespace

constinit const Option kHeaderOption = {
    "header",
    '\0',
    "H",
    "whether a CSV file's first line is a header: yes, no, or auto (default: if one of its cells is not "
    "a number)",
    {listed<kHeaders>}};
constinit const Option kMissingOption = {
    "missing", '\0', "X",
    "values of rows that equal X, read as the model compares (float32 or float64), are missing, as NaN always is"};

Result<RowOptions> row_options(const Arguments& arguments) {
  FVM_ASSIGN(const std::size_t header, arguments.choice("header", kHeaders, 0));
  RowOptions options{static_cast<Header>(header)};
  if (!arguments.has("missing")) return options;
  options.missing = parse_missing(arguments.get("missing"));
  if (options.missing) return options;
  return usage_error("--missing " + in_quotes(arguments.get("missing")) + ": expected a number");
}

Result<void> expect_one_standard_input(const std::string& model, const std::string& rows) {
  if (model != "-" || rows != "-") return {};
  return usage_error("MODEL and ROWS cannot both be standard input");
}

RowForm row_form(const Program& program, const RowOptions& options) {
  const ProgramMeta& meta = program.meta();
  RowForm form;
  form.width = meta.num_features;
  for (std::uint32_t i = 0; i < meta.num_feature_names; ++i) form.names.push_back(program.feature_name(i));
  form.underlined = program.text(StringId::Trainer) == "lightgbm";
  form.hashed = program.section_HashedFeatures();
  form.wide = meta.row_type == ScalarType::Float64 || !form.hashed.empty();
  form.missing = options.missing;
  form.header = options.header;
  return form;
}

Result<RowReader> open_rows(const std::string& path, Source source, const RowForm& form) {
  FVM_ASSIGN(RowReader reader, in_file(path, RowReader::open(std::move(source), form)));
  if (!reader.notice().empty())
    std::fprintf(stderr, "forestvm: %s\n",
                 escaped(in_file(path, refused("", reader.notice())).text()).c_str());
  return reader;
}

Result<Rows> read_rows(const std::string& path, Source source, const RowForm& form) {
  FVM_ASSIGN(RowReader reader, open_rows(path, std::move(source), form));
  Rows rows;
  FVM_TRY(in_file(path, reader.next(std::numeric_limits<std::size_t>::max(), rows)));
  return rows;
}

}  // namespace forestvm::cli
