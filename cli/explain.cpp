// forestvm explain: writes a report on why a model predicts what it does for some rows.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/model.hpp>
#include <forestvm/program.hpp>

#include "cli/backend.hpp"
#include "cli/commands.hpp"
#include "cli/explain/report.hpp"
#include "cli/io/output_file.hpp"
#include "cli/io/quote.hpp"
#include "cli/program_file.hpp"
#include "cli/svg.hpp"

namespace forestvm::cli {
namespace {

constexpr std::uint64_t kMaxSample = 100'000, kMaxShown = 1000, kMaxChosen = 100;

enum class ReportForm { Page, Drawing, Csv, Json };

/// Returns the form that the ending of a file's name chooses; a page for standard output.
Result<ReportForm> form_of(const std::string& out) {
  if (out == "-" || out.ends_with(".html")) return ReportForm::Page;
  if (out.ends_with(".svg")) return ReportForm::Drawing;
  if (out.ends_with(".csv")) return ReportForm::Csv;
  if (out.ends_with(".json")) return ReportForm::Json;
  return usage_error(
      formatted("-o {}: expected a name that ends in .html, .svg, .csv or .json", single_quoted(out)));
}

std::optional<std::uint32_t> feature_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// Returns the index of the name that an option gives among `names`, or the number that it gives, which must be below
/// `count`. `what` says in the error what is named.
Result<std::uint32_t> find_named(const std::string& option, const std::string& text,
                                 const std::vector<std::string>& names, std::uint32_t count,
                                 const std::string& what) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<std::uint32_t>(found - names.begin());
  if (const auto number = feature_number(text); number && *number < count) return *number;
  return usage_error(formatted("--{} {}: the model has no such {}; expected a name or a number below {}",
                               option, single_quoted(text), what, count));
}

Result<std::vector<std::uint64_t>> chosen_rows(const Arguments& arguments) {
  std::vector<std::uint64_t> rows;
  for (const std::string& text : arguments.all("row", "0")) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      return usage_error(
          formatted("--row {}: expected the number of a row, the first of which is 0", single_quoted(text)));
    rows.push_back(number);
  }
  if (rows.size() > kMaxChosen) return usage_error(formatted("--row: expected at most {} rows", kMaxChosen));
  return rows;
}

Result<ExplainOptions> read_explain_options(const Arguments& arguments) {
  ExplainOptions options;
  FVM_ASSIGN(options.model, required(arguments, "MODEL"));
  FVM_ASSIGN(options.rows, batch_options(arguments));
  FVM_TRY(expect_one_standard_input(options.model, options.rows.path));
  options.out = arguments.get("out", "-");
  FVM_TRY(expect_other_file(options.out, options.model));
  FVM_TRY(expect_other_file(options.out, options.rows.path));
  FVM_ASSIGN(options.chosen, chosen_rows(arguments));
  FVM_ASSIGN(options.sample, arguments.number("sample", 1, kMaxSample, options.sample));
  FVM_ASSIGN(options.shown, arguments.number("show", 1, kMaxShown, options.shown));
  options.backend.target = arguments.get("target", "auto");
  FVM_ASSIGN(const std::uint64_t threads, arguments.number("threads", 1, kMaxThreads, 0));
  options.backend.threads = static_cast<unsigned>(threads);
  return options;
}

/// Reads the options that need the model.
Result<void> read_explain_options(const Arguments& arguments, const Model& model, ExplainOptions& options) {
  if (arguments.has("score")) {
    FVM_ASSIGN(options.output, find_named("score", arguments.get("score"), model.class_labels,
                                          model.num_outputs, "raw score"));
  }
  if (arguments.has("feature")) {
    FVM_ASSIGN(options.feature, find_named("feature", arguments.get("feature"), model.feature_names,
                                           model.num_features, "feature"));
  }
  return {};
}

/// Returns the one drawing of an SVG file, or the one table of a CSV file.
Result<std::string> one_kind(const Explanation& all, PlotKind kind, ReportForm form) {
  std::vector<Plot> plots = plots_of(all, kind);
  if (plots.empty()) {
    const std::string what(kPlotNames[static_cast<std::size_t>(kind)]);
    return in_file(all.model,
                   refused(formatted("there is nothing to draw as {} (see the notes of the page)", what)));
  }
  if (form == ReportForm::Drawing) return svg_file(plots.front().drawing);
  for (std::size_t i = 1; i < plots.size(); ++i)
    for (auto& row : plots[i].numbers.rows) plots.front().numbers.rows.push_back(std::move(row));
  return csv_of(plots.front().numbers);
}

Result<void> run_explain(const Arguments& arguments) {
  FVM_ASSIGN(ExplainOptions options, read_explain_options(arguments));
  std::optional<PlotKind> kind;
  if (arguments.has("plot")) {
    FVM_ASSIGN(const std::size_t index, arguments.choice("plot", kPlotNames, 0));
    kind = static_cast<PlotKind>(index);
  }
  FVM_ASSIGN(const ReportForm form, form_of(options.out));
  const bool has_one_kind = form == ReportForm::Drawing || form == ReportForm::Csv;
  if (has_one_kind && !kind)
    return usage_error(formatted("-o {}: --plot must say which plot it shows", single_quoted(options.out)));
  if (form == ReportForm::Page && kind)
    return usage_error("--plot: a page has all plots; name a file that ends in .svg, .csv or .json");
  FVM_ASSIGN(const ModelOrProgram loaded, load_requested(arguments, options.model));
  const auto* const model = std::get_if<Model>(&loaded);
  if (model == nullptr)
    return in_file(options.model,
                   refused("is a program, which has no splits and covers to show: give the trainer's model"));
  FVM_TRY(read_explain_options(arguments, *model, options));
  FVM_ASSIGN(const Explanation all, explain_rows(*model, options));
  if (form == ReportForm::Page) return write_output(options.out, explain_page(all));
  if (form == ReportForm::Json) return write_output(options.out, explain_json(all, kind));
  FVM_ASSIGN(const std::string text, one_kind(all, *kind, form));
  return write_output(options.out, text);
}

std::string explain_notes() {
  return "Contributions are exact SHAP values by the paths of the trees, as those of run. Rows are read once, batch\n"
         "by batch; a sample of them is kept for drawings, chosen by a generator of fixed seed, so that equal\n"
         "input gives equal bytes. Partial dependence is exact and of all rows, at all thresholds of the model.\n"
         "A page is one file without scripts, which loads nothing and follows the reader's light or dark setting.\n"
         "An SVG file has one drawing: of the first --row, or of --feature, by default the strongest. A CSV file has\n"
         "the numbers of all drawings of its kind, a JSON file those of all kinds unless --plot names one.\n";
}

}  // namespace

const Command kExplain = {
    "explain",
    "reports why a model predicts what it does",
    {"explain MODEL ROWS -o report.html [options]"},
    {{"MODEL", "a trainer's model file; - is standard input"},
     {"ROWS", "as for run, except encoded rows; - is standard input"}},
    {{"out", 'o', "OUT",
      "where the report goes: a name that ends in .html (a page), .svg (a drawing), .csv or .json (numbers); - "
      "(default) is a page on standard output",
      kFiles},
     {"plot",
      '\0',
      "PLOT",
      "what a .svg, .csv or .json file has: importance (mean |contribution|, gain, splits, cover), beeswarm "
      "(contributions in the sample), waterfall (contributions of rows), dependence (contributions over values), or "
      "partial-dependence (mean raw score over values)",
      {listed<kPlotNames>}},
     {"row",
      '\0',
      "N",
      "a row that gets a waterfall, counted from 0 (default 0); may be given several times",
      {},
      true},
     {"score", '\0', "S", "the raw score to explain, by class label or number; default 0"},
     {"feature", '\0', "F", "the only feature to show, by name or number; default: the strongest"},
     {"show", '\0', "N", "number of features that drawings show, default 20"},
     {"sample", '\0', "N", "number of rows that drawings show, default 1000"},
     {"target", '\0', "T", "as for run", kTargetOption.values},
     {"threads", '\0', "N", "number of threads that compute contributions; default: all cores"},
     {"batch", '\0', "N", "rows per call, default 65536 or 32 MiB of rows and contributions"},
     FVM_ROW_OPTIONS,
     kMissingOption,
     kRoundsOption},
    "  forestvm explain model.json rows.csv -o report.html --row 17\n"
    "  forestvm explain model.json rows.csv -o importance.csv --plot importance\n",
    explain_notes,
    run_explain,
};

}  // namespace forestvm::cli
