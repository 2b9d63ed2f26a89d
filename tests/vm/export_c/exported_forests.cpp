#include "exported_forests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include <forestvm/backend.hpp>
#include <forestvm/core/target_quantile.hpp>
#include <forestvm/internal/city_hash.hpp>
#include <forestvm/internal/names.hpp>

#include "support/floats.hpp"
#include "support/temporary_folder.hpp"

namespace forestvm::test {
namespace {

constexpr const char* kWarnings =
    " -std=c99 -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion -Werror ";

constexpr const char* kIncludes = "\n#include <stdio.h>\n#include <stdlib.h>\n";

constexpr const char* kMain = R"(
static void *memory(size_t bytes) {
  void *const found = malloc(bytes == 0u ? 1u : bytes);
  if (found == NULL) exit(2);
  return found;
}
static void *read_rows(size_t bytes) {
  void *const rows = memory(bytes);
  if (fread(rows, 1u, bytes, stdin) != bytes) exit(3);
  return rows;
}
/* Writes the codes of texts of all sizes. */
void write_codes(void (*category)(float *, const char *, size_t)) {
  char text[200];
  size_t size, i;
  for (size = 0; size <= sizeof text; ++size) {
    float cell;
    for (i = 0; i < size; ++i) text[i] = (char)(i * 7u + size * 31u);
    category(&cell, text, size);
    if (fwrite(&cell, 1u, sizeof cell, stdout) != sizeof cell) exit(4);
  }
}
/* Calls a function for one row and for all rows, with exactly as much memory as it may write. */
#define WRITE(function, TYPE, width) \
  for (i = 0; i < 2; ++i) { \
    const size_t rows_here = i == 0 ? 1u : count, bytes = rows_here * (width) * sizeof(TYPE); \
    TYPE *const out = memory(bytes); \
    function(rows, rows_here, features, out); \
    if (fwrite(out, 1u, bytes, stdout) != bytes) exit(4); \
    free(out); \
  }
/* Does the same for a call with options, which returns a number: writes it, too. */
#define WRITE_WITH(call, TYPE, width) \
  for (i = 0; i < 2; ++i) { \
    const size_t rows_here = i == 0 ? 1u : count, bytes = rows_here * (width) * sizeof(TYPE); \
    TYPE *const out = memory(bytes); \
    const int32_t wrong = call; \
    if (fwrite(&wrong, 1u, sizeof wrong, stdout) != sizeof wrong) exit(4); \
    if (wrong == 0 && fwrite(out, 1u, bytes, stdout) != bytes) exit(4); \
    free(out); \
  }
)";

/// The numbers of rounds from one stage to the next that are tried.
constexpr std::uint32_t kEvery[] = {1, 3};

/// The kinds of contributions, and the functions that write them.
constexpr std::pair<OutputKind, const char*> kContributions[] = {
    {OutputKind::Contributions, "predict_contributions"},
    {OutputKind::Interactions, "predict_interactions"},
    {OutputKind::ApproxContributions, "predict_approx_contributions"}};

CallOptions stages_of(std::uint32_t every) {
  CallOptions options;
  options.every = every;
  return options;
}

bool takes_texts(const Program& program) { return !program.lookups().empty(); }

std::string c_type(ScalarType type) { return type == ScalarType::Float64 ? "double" : "float"; }

std::size_t count_of(const std::vector<double>& rows, const ProgramMeta& meta) {
  return rows.size() / meta.num_features;
}

/// Returns rows in the form that C reads, and the VM if some features are hashed: cells of hashed features hold the
/// bits of their codes.
template <class Cell>
std::vector<Cell> cells_of(const Program& program, const std::vector<double>& rows) {
  std::vector<Cell> cells(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) cells[i] = static_cast<Cell>(rows[i]);
  for (const std::uint32_t feature : program.hashed_features())
    for (std::size_t i = feature; i < rows.size(); i += program.meta().num_features) {
      const auto code = static_cast<std::int32_t>(rows[i]);
      std::memcpy(&cells[i], &code, sizeof code);
    }
  return cells;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// Returns the codes that the C function write_codes must write.
std::vector<std::int32_t> expected_codes() {
  std::vector<std::int32_t> codes;
  for (std::size_t size = 0; size <= 200; ++size) {
    std::string text(size, ' ');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 + size * 31);
    codes.push_back(category_code(text));
  }
  return codes;
}

/// Reads what the C program wrote, and compares it with what the VM says.
class Comparison {
 public:
  explicit Comparison(std::string written) : written_(std::move(written)) {}

  bool at_end() const { return at_ == written_.size(); }

  template <class T>
  void expect(const std::string& what, const std::vector<T>& expected) {
    const std::size_t begin = std::exchange(at_, at_ + expected.size() * sizeof(T));
    ASSERT_LE(at_, written_.size()) << what;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      T got;
      std::memcpy(&got, written_.data() + begin + i * sizeof(T), sizeof got);
      ASSERT_TRUE(equal(got, expected[i])) << what << ": number " << i << " of " << expected.size() << " is "
                                           << got << " in C, " << expected[i] << " in the VM";
    }
  }

 private:
  template <class T>
  static bool equal(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return support::same_bits(a, b) || (std::isnan(a) && std::isnan(b));
    else
      return a == b;
  }

  std::string written_;
  std::size_t at_ = 0;
};

/// Returns number `i` of the margins that are tried; C computes the same.
double margin_of(std::size_t i) { return static_cast<double>(i % 11) * 0.375 - 1.5; }
constexpr const char* kMargin = "(float)(n % 11u) * 0.375f - 1.5f";

/// The bits of options. Exported functions return the bit of an option that is wrong.
constexpr std::int32_t kRounds = 1, kMargins = 2, kEarlyStop = 4;
/// The number that exported functions return for a wrong number of virtual ensembles.
constexpr std::int32_t kEnsembles = 8;

/// Options of a call that are tried.
struct Tried {
  std::optional<Rounds> rounds;
  bool margins = false;
  std::optional<EarlyStop> stop{};

  std::int32_t kinds() const {
    return (rounds ? kRounds : 0) | (margins ? kMargins : 0) | (stop ? kEarlyStop : 0);
  }
  /// Returns these options with those alone that are in `kinds`.
  Tried only(std::int32_t kinds) const {
    Tried some;
    if ((kinds & kRounds) != 0) some.rounds = rounds;
    some.margins = margins && (kinds & kMargins) != 0;
    if ((kinds & kEarlyStop) != 0) some.stop = stop;
    return some;
  }
  std::string text() const {
    std::string text;
    if (rounds) text += ", rounds " + std::to_string(rounds->begin) + ":" + std::to_string(rounds->end);
    if (margins) text += ", margins";
    if (stop) text += ", stop at " + std::to_string(stop->margin) + " every " + std::to_string(stop->every);
    return text;
  }
  /// Returns the initializer of the options in C.
  std::string initializer() const {
    std::string text;
    if (rounds)
      text += ".rounds_begin = " + std::to_string(rounds->begin) +
              "u, .rounds_end = " + std::to_string(rounds->end) + "u, ";
    if (margins) text += ".base_margin = margins, ";
    if (stop)
      text += ".early_stop_margin = " + std::to_string(stop->margin) +
              ", .early_stop_every = " + std::to_string(stop->every) + "u, ";
    return "{" + text + "}";
  }
};

/// Returns options to try: some that calls take and some that are wrong, or that the program does not have.
std::vector<Tried> tried_options(const Program& program) {
  const auto begins = program.round_begins();
  // A program without rounds refuses these.
  const auto rounds = static_cast<std::uint32_t>(begins.empty() ? 2 : begins.size() - 1);
  const Rounds middle{rounds / 3, std::max(rounds / 3 + 1, rounds * 2 / 3)};
  return {{middle},
          {Rounds{0, (rounds + 1) / 2}},
          {Rounds{0, rounds}},
          {Rounds{1, 1}},
          {Rounds{0, rounds + 1}},
          {{}, true},
          {middle, true},
          {{}, false, EarlyStop{0.5, 1}},
          {{}, false, EarlyStop{2, 3}},
          {middle, true, EarlyStop{1, 2}},
          {{}, false, EarlyStop{-1, 2}},
          {{}, true, EarlyStop{0, 4000000000}}};
}

/// An output whose calls may have options.
struct OutputWithOptions {
  OutputKind output;
  const char* function;
};
constexpr OutputWithOptions kWithOptions[] = {
    {OutputKind::Raw, "predict_raw"},
    {OutputKind::Value, "predict"},
    {OutputKind::Class, "predict_class"},
    {OutputKind::Trees, "predict_trees"},
    {OutputKind::Staged, "predict_staged"},
    {OutputKind::VirtEnsembles, "predict_virt_ensembles"},
    {OutputKind::Uncertainty, "predict_uncertainty"},
    {OutputKind::Contributions, "predict_contributions"},
    {OutputKind::Interactions, "predict_interactions"},
    {OutputKind::ApproxContributions, "predict_approx_contributions"}};

/// Returns whether an output is of virtual ensembles.
bool of_members(const Program& program, OutputKind output) {
  return (output == OutputKind::VirtEnsembles || output == OutputKind::Uncertainty) &&
         !program.uncertainty().empty() && program.uncertainty()[0].rule != UncertaintyRule::Trees;
}

/// Quantiles that are tried, and the number that exported functions return for wrong ones.
constexpr double kQuantiles[] = {0.1, 0.5, 0.9, 0, 1, 1.0 / 3};
constexpr std::int32_t kWrongQuantiles = 16;

/// The numbers of virtual ensembles that are tried.
constexpr std::uint32_t kEnsembleCounts[] = {0, 1, 3, 1000};

/// The VM's answers for one program's rows.
class Judge {
 public:
  Judge(const Program& program, const std::vector<double>& rows) : program_(program), wide_(rows) {
    const bool as_float64 =
        program.meta().row_type == ScalarType::Float64 || !program.hashed_features().empty();
    if (!as_float64) narrow_.assign(rows.begin(), rows.end());
    for (const std::uint32_t feature : program.hashed_features())
      EXPECT_LT(feature, program.meta().num_features);
    block_ = {as_float64 ? static_cast<const void*>(wide_.data()) : narrow_.data(),
              count_of(rows, program.meta()),
              program.meta().num_features,
              as_float64 ? RowType::Float64 : RowType::Float32,
              1,
              !program.hashed_features().empty()};
    auto predictor = host_backend(program);
    EXPECT_TRUE(predictor.ok()) << predictor.error().text();
    predictor_ = std::move(*predictor);
    context_ = predictor_->make_context();
    for (std::size_t i = 0; i < block_.count * program.meta().num_outputs; ++i)
      margins_.push_back(margin_of(i));
  }

  /// Returns the options of a call of one or all rows.
  CallOptions options(const Tried& tried, bool all) const {
    CallOptions options;
    options.rounds = tried.rounds;
    options.early_stop = tried.stop;
    options.every = options.ensembles = kOptionsEvery;
    if (tried.margins)
      options.base_margin = {margins_.data(), all ? block_.count : 1, program_.meta().num_outputs, true};
    return options;
  }

  /// Returns 0 if a call can have these options, otherwise the bit of the first kind that is wrong.
  std::int32_t wrong(OutputKind output, const Tried& tried) const {
    for (const std::int32_t kind : {kRounds, kMargins, kEarlyStop}) {
      if ((tried.kinds() & kind) == 0 || takes(output, tried.only(kind))) continue;
      const bool first = tried.rounds && tried.rounds->begin == 0 && tried.rounds->end <= rounds();
      return kind == kRounds && first && of_members(program_, output) ? kEnsembles : kind;
    }
    return 0;
  }

  /// Returns whether calls for an output can have options.
  bool takes_options(OutputKind output) const {
    const Tried right[] = {{Rounds{0, rounds()}}, {{}, true}, {{}, false, EarlyStop{1, 1}}};
    return std::ranges::any_of(right, [&](const Tried& tried) { return wrong(output, tried) == 0; });
  }

  static constexpr std::uint32_t kOptionsEvery = 2;

  /// Returns whether a call can have this number of virtual ensembles.
  bool takes_ensembles(OutputKind output, std::uint32_t ensembles) const {
    CallOptions options;
    options.ensembles = ensembles;
    return takes(output, options);
  }

  template <class T>
  std::vector<T> answers(OutputKind output, ResultType type, bool all, const CallOptions& options) const {
    RowBlock block = block_;
    if (!all) block.count = 1;
    std::vector<T> out(block.count * output_width(program_, output, options));
    const auto done = predictor_->predict_with(*context_, block, output, type, options, out.data());
    EXPECT_TRUE(done.ok()) << done.error().text();
    return out;
  }

 private:
  std::uint32_t rounds() const {
    const auto begins = program_.round_begins();
    return static_cast<std::uint32_t>(begins.empty() ? 0 : begins.size() - 1);
  }

  bool takes(OutputKind output, const Tried& tried) const { return takes(output, options(tried, false)); }
  bool takes(OutputKind output, const CallOptions& options) const {
    RowBlock block = block_;
    block.count = 1;
    const ResultType type = output == OutputKind::Class ? ResultType::Int64 : ResultType::Float64;
    std::vector<double> out(std::max<std::size_t>(output_width(program_, output, options), 1));
    return predictor_->predict_with(*context_, block, output, type, options, out.data()).ok();
  }

  const Program& program_;
  std::vector<double> margins_;
  std::vector<double> wide_;
  std::vector<float> narrow_;
  RowBlock block_;
  std::unique_ptr<Predictor> predictor_;
  std::unique_ptr<Context> context_;
};

template <class T>
void compare_output(const Judge& judge, OutputKind output, ResultType type, const std::string& what,
                    Comparison& written, const CallOptions& options = {}) {
  for (const bool all : {false, true})
    written.expect(what + ", output " + std::string(name_of(output)),
                   judge.answers<T>(output, type, all, options));
}

/// Compares quantiles, and what C returns for wrong ones.
void compare_quantiles(const Judge& judge, const Program& program, const std::string& what,
                       Comparison& written) {
  if (program.targets().empty()) return;
  CallOptions options;
  options.quantiles = kQuantiles;
  for (const bool all : {false, true}) {
    written.expect(what + ", quantiles", std::vector<std::int32_t>{0});
    written.expect(what + ", quantiles",
                   judge.answers<double>(OutputKind::Quantile, ResultType::Float64, all, options));
  }
  written.expect(what + ", wrong quantiles", std::vector<std::int32_t>(6, kWrongQuantiles));
}

/// Compares what calls with options write, and what they return.
void compare_options(const Judge& judge, const Program& program, const std::string& what,
                     Comparison& written) {
  for (const OutputWithOptions& of : kWithOptions) {
    if (!judge.takes_options(of.output)) continue;
    for (const Tried& tried : tried_options(program)) {
      const std::string name = what + ", output " + std::string(name_of(of.output)) + tried.text();
      for (const bool all : {false, true}) {
        const std::int32_t wrong = judge.wrong(of.output, tried);
        written.expect(name + ", returned number", std::vector<std::int32_t>{wrong});
        if (wrong != 0) continue;
        const CallOptions options = judge.options(tried, all);
        if (of.output == OutputKind::Class)
          written.expect(name, judge.answers<std::int64_t>(of.output, ResultType::Int64, all, options));
        else if (program.meta().score_type == ScalarType::Float64)
          written.expect(name, judge.answers<double>(of.output, ResultType::Float64, all, options));
        else
          written.expect(name, judge.answers<float>(of.output, ResultType::Float32, all, options));
      }
    }
  }
}

/// Compares scores, in the type of the program's.
void compare_scores(const Judge& judge, const ProgramMeta& meta, OutputKind output, const std::string& what,
                    Comparison& written, const CallOptions& options = {}) {
  if (meta.score_type == ScalarType::Float64)
    compare_output<double>(judge, output, ResultType::Float64, what, written, options);
  else
    compare_output<float>(judge, output, ResultType::Float32, what, written, options);
}

/// Compares what the functions that say how sure a model is write.
void compare_uncertainty(const Judge& judge, const Program& program, const std::string& what,
                         Comparison& written) {
  if (program.uncertainty().empty() || program.round_begins().size() < 3) return;
  if (!of_members(program, OutputKind::Uncertainty))
    return compare_scores(judge, program.meta(), OutputKind::Uncertainty, what, written);
  for (const std::uint32_t ensembles : kEnsembleCounts)
    for (const OutputKind output : {OutputKind::VirtEnsembles, OutputKind::Uncertainty}) {
      CallOptions options;
      options.ensembles = ensembles;
      const std::string name =
          what + ", " + std::to_string(ensembles) + " ensembles, output " + std::string(name_of(output));
      const bool takes = judge.takes_ensembles(output, ensembles);
      for (const bool all : {false, true}) {
        written.expect(name, std::vector<std::int32_t>{takes ? 0 : kEnsembles});
        if (takes) written.expect(name, judge.answers<double>(output, ResultType::Float64, all, options));
      }
    }
}

}  // namespace

Result<Compiled> compile_with_kinds(const Model& model, const Schedule& schedule, CompileOptions options) {
  options.contributions = options.approx_contributions = true;
  auto compiled = compile(model, schedule, options);
  if (compiled.ok()) return compiled;
  options.contributions = options.approx_contributions = false;
  return compile(model, schedule, options);
}

bool compiles(const std::string& command) {
  return std::system(
             ("echo 'int main(void) { return 0; }' | " + command + " -x c - -o /dev/null > /dev/null 2>&1")
                 .c_str()) == 0;
}

void ExportedForests::add(const Program& program, ExportOptions options, const std::string& what,
                          std::vector<double> rows) {
  options.prefix = "f" + std::to_string(entries_.size());
  const auto exported = export_c(program, options);
  ASSERT_TRUE(exported.ok()) << what << ": " << exported.error().text();
  source_ += exported->text;
  entries_.push_back({program, options.prefix, what, std::move(rows)});
}

namespace {

/// Returns the C statements that call functions with options.
std::string calls_with_options(const Judge& judge, const Program& program, const std::string& prefix) {
  const std::string score = c_type(program.meta().score_type);
  std::string text;
  for (const OutputWithOptions& of : kWithOptions) {
    if (!judge.takes_options(of.output)) continue;
    const bool counts = of.output == OutputKind::Staged || of_members(program, of.output);
    const std::string every = counts ? std::to_string(Judge::kOptionsEvery) + "u, " : "";
    for (const Tried& tried : tried_options(program)) {
      const bool right = judge.wrong(of.output, tried) == 0;
      const auto width = right ? output_width(program, of.output, judge.options(tried, true)) : 1;
      text +=
          "  {\n    const " + prefix + "_options options = " + tried.initializer() + ";\n    WRITE_WITH(" +
          prefix + "_" + of.function + "_with(&options, rows, rows_here, features, " + every + "out), " +
          (of.output == OutputKind::Class ? "int64_t" : score) + ", " + std::to_string(width) + "u)\n  }\n";
    }
  }
  if (text.empty()) return text;
  const std::string count = "count * " + std::to_string(program.meta().num_outputs) + "u";
  return "  " + score + " *const margins = memory(" + count + " * sizeof(" + score +
         "));\n  size_t n;\n  for (n = 0; n < " + count + "; ++n) margins[n] = " + kMargin + ";\n" + text +
         "  free(margins);\n";
}

/// Returns the C statements that call the function for quantiles: with right ones, with a wrong one, and with none.
std::string calls_of_quantiles(const Program& program, const std::string& prefix) {
  if (program.targets().empty()) return "";
  const auto targets = static_cast<std::uint32_t>(program.targets().size());
  const std::string call = "  WRITE_WITH(" + prefix + "_predict_quantile(rows, rows_here, features, ";
  return "  {\n  static const double quantiles[] = {0.1, 0.5, 0.9, 0, 1, 1.0 / 3}, above[] = {0.5, 1.5}, "
         "below[] = {-0.5};\n  uint32_t *const counts = memory(" +
         std::to_string(targets + target_blocks(targets)) + "u * sizeof(uint32_t));\n" + call +
         "quantiles, 6u, counts, out), double, 6u)\n" + call + "above, 2u, counts, out), double, 2u)\n" +
         call + "below, 1u, counts, out), double, 1u)\n" + call +
         "quantiles, 0u, counts, out), double, 0u)\n" + "  free(counts);\n  }\n";
}

/// Returns the C statements that call the functions that say how sure a model is.
std::string calls_of_uncertainty(const Program& program, const std::string& prefix) {
  const auto begins = program.round_begins();
  const std::string score = c_type(program.meta().score_type);
  std::string text;
  if (program.uncertainty().empty() || begins.size() < 3) return text;
  if (!of_members(program, OutputKind::Uncertainty))
    return "  WRITE(" + prefix + "_predict_uncertainty, " + score + ", " +
           std::to_string(output_width(program, OutputKind::Uncertainty)) + "u)\n";
  for (const std::uint32_t ensembles : kEnsembleCounts)
    for (const bool all : {true, false}) {
      CallOptions options;
      options.ensembles = ensembles;
      const auto output = all ? OutputKind::VirtEnsembles : OutputKind::Uncertainty;
      text += "  WRITE_WITH(" + prefix + (all ? "_predict_virt_ensembles" : "_predict_uncertainty") +
              "(rows, rows_here, features, " + std::to_string(ensembles) + "u, out), " + score + ", " +
              std::to_string(output_width(program, output, options)) + "u)\n";
    }
  return text;
}

}  // namespace

std::string ExportedForests::calls(const Entry& entry) {
  const ProgramMeta& meta = entry.program.meta();
  const std::string score = c_type(meta.score_type), row = c_type(meta.row_type);
  const std::string features = std::to_string(meta.num_features) + "u";
  const std::string count = std::to_string(count_of(entry.rows, meta)) + "u";
  const auto write = [&](const char* function, const std::string& type, OutputKind output) {
    return "  WRITE(" + entry.prefix + "_" + function + ", " + type + ", " +
           std::to_string(output_width(entry.program, output)) + "u)\n";
  };
  std::string rounds;
  if (output_width(entry.program, OutputKind::Trees) != 0)
    rounds += write("predict_trees", score, OutputKind::Trees);
  if (output_width(entry.program, OutputKind::Staged) != 0)
    for (const std::uint32_t every : kEvery) {
      const std::string by = std::to_string(every) + "u";
      rounds += "#define STAGED(rows, count, stride, out) " + entry.prefix +
                "_predict_staged(rows, count, stride, " + by + ", out)\n  WRITE(STAGED, " + score + ", " +
                std::to_string(output_width(entry.program, OutputKind::Staged, stages_of(every))) +
                "u)\n#undef STAGED\n";
    }
  std::string contributions;
  for (const auto& [output, function] : kContributions)
    if (output_width(entry.program, output) != 0) contributions += write(function, score, output);
  return "static void run_" + entry.prefix + "(void) {\n  const size_t features = " + features +
         ", count = " + count + ";\n  " + row + " *const rows = read_rows(count * features * sizeof(" + row +
         "));\n  int i;\n" + write("predict_raw", score, OutputKind::Raw) +
         write("predict", score, OutputKind::Value) +
         (meta.class_rule == ClassRule::None ? "" : write("predict_class", "int64_t", OutputKind::Class)) +
         write("predict_leaf", "int32_t", OutputKind::Leaf) + rounds + contributions +
         calls_of_quantiles(entry.program, entry.prefix) + calls_of_uncertainty(entry.program, entry.prefix) +
         calls_with_options(Judge(entry.program, entry.rows), entry.program, entry.prefix) +
         (takes_texts(entry.program) ? "  write_codes(" + entry.prefix + "_category);\n" : "") +
         "  free(rows);\n}\n";
}

void ExportedForests::compare(const std::string& compiler) const {
  support::TemporaryFolder folder;
  std::string rows, source = source_ + kIncludes + kMain, main = "int main(void) {\n";
  for (const Entry& entry : entries_) {
    source += calls(entry);
    main += "  run_" + entry.prefix + "();\n";
    rows += entry.program.meta().row_type == ScalarType::Float64
                ? bytes_of(cells_of<double>(entry.program, entry.rows))
                : bytes_of(cells_of<float>(entry.program, entry.rows));
  }
  folder.write("forests.c", source + main + "  return 0;\n}\n");
  folder.write("rows", rows);
  const std::string in = "cd " + folder.path().string() + " && ";
  ASSERT_EQ(std::system((in + compiler + kWarnings + "forests.c -o forests").c_str()), 0)
      << "kept: " << folder.keep();
  ASSERT_EQ(std::system((in + "./forests < rows > answers").c_str()), 0) << "kept: " << folder.keep();
  Comparison written(support::content_of(folder.file("answers")));
  for (const Entry& entry : entries_) {
    const ProgramMeta& meta = entry.program.meta();
    const Judge judge(entry.program, entry.rows);
    for (const OutputKind output : {OutputKind::Raw, OutputKind::Value})
      compare_scores(judge, meta, output, entry.what, written);
    if (meta.class_rule != ClassRule::None)
      compare_output<std::int64_t>(judge, OutputKind::Class, ResultType::Int64, entry.what, written);
    compare_output<std::int32_t>(judge, OutputKind::Leaf, ResultType::Int32, entry.what, written);
    if (output_width(entry.program, OutputKind::Trees) != 0)
      compare_scores(judge, meta, OutputKind::Trees, entry.what, written);
    if (output_width(entry.program, OutputKind::Staged) != 0)
      for (const std::uint32_t every : kEvery)
        compare_scores(judge, meta, OutputKind::Staged, entry.what, written, stages_of(every));
    for (const auto& [output, function] : kContributions)
      if (output_width(entry.program, output) != 0) compare_scores(judge, meta, output, entry.what, written);
    compare_quantiles(judge, entry.program, entry.what, written);
    compare_uncertainty(judge, entry.program, entry.what, written);
    compare_options(judge, entry.program, entry.what, written);
    if (takes_texts(entry.program)) written.expect(entry.what + ", codes", expected_codes());
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_TRUE(written.at_end());
}

}  // namespace forestvm::test
