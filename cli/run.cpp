// forestvm run: predicts rows with a model, which is compiled first, or with a program. RowReader (cli/io) and Batches
// (cli/batches.cpp) bring the rows, predict_batches below hands each batch to Predictor::predict_with (vm/host), and
// PredictionWriter or SparseWriter (cli/io) writes the results.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/program.hpp>

#include "cli/backend.hpp"
#include "cli/background.hpp"
#include "cli/batches.hpp"
#include "cli/chosen_terms.hpp"
#include "cli/commands.hpp"
#include "cli/io/predictions.hpp"
#include "cli/io/quote.hpp"
#include "cli/io/sparse_predictions.hpp"
#include "cli/margins.hpp"
#include "cli/profile.hpp"
#include "cli/program_file.hpp"
#include "cli/progress.hpp"
#include "cli/samples.hpp"

namespace forestvm::cli {
namespace {

/// The most bytes of the interactions of a row, unless --max-bytes says otherwise.
constexpr std::uint64_t kMaxRowBytes = std::uint64_t{64} << 20;

/// The options of the command line.
struct RunOptions {
  std::string model, out;
  std::string margins;            ///< Value of --base-margin; empty without it.
  CallOptions call;               ///< Options of each call, without the margins and the features.
  std::vector<double> quantiles;  ///< Numbers of --quantiles, to which `call` refers.
  ChosenTerms terms;              ///< The numbers of contributions and interactions that are written.
  OutputKind output = OutputKind::Value;
  BackendChoice backend;
  BatchOptions rows;
  std::uint64_t max_bytes = 0;
  bool has_header = false;  ///< True if CSV output begins with names.
};

/// Reads "margin=10,every=10", in any order; a part that is absent has LightGBM's default. Returns a Usage error for
/// other texts, and for a part that comes twice.
Result<EarlyStop> early_stop_of(const std::string& text) {
  EarlyStop stop;
  bool good = !text.empty(), has_margin = false, has_every = false;
  for (std::size_t begin = 0; good && begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    const char* const last = part.data() + part.size();
    const auto reads = [&](std::string_view name, auto& number, bool& has_it) {
      if (!part.starts_with(name) || std::exchange(has_it, true)) return false;
      const auto [at, error] = std::from_chars(part.data() + name.size(), last, number);
      return error == std::errc() && at == last;
    };
    good = reads("margin=", stop.margin, has_margin) || reads("every=", stop.every, has_every);
    begin = end + 1;
  }
  if (good && stop.margin >= 0 && stop.every > 0) return stop;
  return usage_error(
      formatted("--early-stop {}: expected margin=M,every=N, a margin of 0 or more and 1 round or more",
                single_quoted(text)));
}

/// Reads numbers with commas between them. Returns a Usage error for other texts, and for numbers outside [0, 1].
Result<std::vector<double>> quantiles_of(const std::string& text) {
  std::vector<double> quantiles;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    double number = -1;
    const auto [at, error] = std::from_chars(text.data() + begin, text.data() + end, number);
    if (error != std::errc() || at != text.data() + end || !(number >= 0 && number <= 1))
      return usage_error(formatted("--quantiles {}: expected numbers from 0 to 1 with commas between them",
                                   single_quoted(text)));
    quantiles.push_back(number);
    begin = end + 1;
  }
  return quantiles;
}

Result<RunOptions> read_predict_options(const Arguments& arguments) {
  RunOptions options;
  FVM_ASSIGN(options.model, required(arguments, "MODEL"));
  FVM_ASSIGN(options.rows, batch_options(arguments));
  FVM_TRY(expect_one_standard_input(options.model, options.rows.path));
  options.out = arguments.get("out", "-");
  FVM_ASSIGN(options.output, arguments.choice("output", options.output));
  FVM_ASSIGN(options.terms, ChosenTerms::make(arguments, options.output, options.out));
  if (!options.terms.sparse()) FVM_TRY(check_predictions_name(options.out));
  FVM_ASSIGN(options.backend, choose_backend(arguments));
  FVM_ASSIGN(const std::uint64_t threads, arguments.number("threads", 1, kMaxThreads, 0));
  options.backend.host.threads = static_cast<unsigned>(threads);
  if (arguments.has("max-bytes") && options.output != OutputKind::Interactions)
    return usage_error("--max-bytes: is for --output interactions, whose size it limits");
  FVM_ASSIGN(options.max_bytes, arguments.number("max-bytes", 1, UINT64_MAX, kMaxRowBytes));
  options.margins = arguments.get("base-margin");
  if (options.margins == "-") return usage_error("--base-margin: margins are read from a file");
  FVM_TRY(expect_other_file(options.out, options.margins));
  if (arguments.get("background") == "-") return usage_error("--background: rows are read from a file");
  FVM_TRY(expect_other_file(options.out, arguments.get("background")));
  if (arguments.has("early-stop")) {
    FVM_ASSIGN(options.call.early_stop, early_stop_of(arguments.get("early-stop")));
  }
  if (arguments.has("every") && options.output != OutputKind::Staged)
    return usage_error("--every: is for --output staged, and says how many rounds lie between its scores");
  FVM_ASSIGN(const std::uint64_t every, arguments.number("every", 1, UINT32_MAX, 1));
  options.call.every = static_cast<std::uint32_t>(every);
  const bool members =
      options.output == OutputKind::VirtEnsembles || options.output == OutputKind::Uncertainty;
  if (arguments.has("ensembles") && !members)
    return usage_error("--ensembles: is for --output virt-ensembles and uncertainty");
  FVM_ASSIGN(const std::uint64_t ensembles, arguments.number("ensembles", 1, UINT32_MAX, 10));
  options.call.ensembles = static_cast<std::uint32_t>(ensembles);
  if (arguments.has("samples")) {
    FVM_ASSIGN(const auto files, sample_files(arguments.get("samples")));
    FVM_TRY(expect_other_file(options.out, files.first));
    FVM_TRY(expect_other_file(options.out, files.second));
  }
  if (arguments.has("quantiles")) {
    if (options.output != OutputKind::Quantile) return usage_error("--quantiles: is for --output quantile");
    FVM_ASSIGN(options.quantiles, quantiles_of(arguments.get("quantiles")));
    options.call.quantiles = options.quantiles;
  }
  options.has_header = arguments.has("output-header");
  if ((is_npy_name(options.out) || options.terms.sparse()) && (options.has_header || options.rows.form.keep))
    return usage_error(std::string(options.has_header ? "--output-header" : "--keep") +
                       (options.terms.sparse() ? ": a sparse matrix has no room for texts; write CSV"
                                               : ": an NPY array has no room for texts; write CSV"));
  FVM_TRY(expect_other_file(options.out, options.model));
  FVM_TRY(expect_other_file(options.out, options.rows.path));
  return options;
}

/// Returns the class names that CSV prints; empty for other outputs and for models with numbered classes.
std::vector<std::string> class_labels(const Program& program, OutputKind output) {
  std::vector<std::string> labels;
  const std::uint32_t count = output == OutputKind::Class ? program.meta().num_class_labels : 0;
  for (std::uint32_t i = 0; i < count; ++i) labels.emplace_back(program.class_label(i));
  return labels;
}

std::vector<std::string> feature_names(const Program& program) {
  std::vector<std::string> names;
  for (std::uint32_t f = 0; f < program.meta().num_features; ++f) {
    const std::string_view name = program.feature_name(f);
    names.push_back(name.empty() ? formatted("f{}", f) : std::string(name));
  }
  return names;
}

/// Returns the prefix of the names of output `k` in models of several outputs: its class label or number, and "_".
std::string output_prefix(const Program& program, std::uint32_t k) {
  const ProgramMeta& meta = program.meta();
  if (meta.num_outputs == 1) return "";
  const bool labelled = meta.num_class_labels == meta.num_outputs;
  return (labelled ? std::string(program.class_label(k)) : std::to_string(k)) + "_";
}

/// Returns the names of the strongest terms: feature_0, value_0 and so on, or for interactions first_0, second_0,
/// value_0 and so on.
std::vector<std::string> top_names(const Program& program, const ChosenTerms& chosen) {
  const std::vector<const char*> parts = chosen.top_width() == 3
                                             ? std::vector<const char*>{"first_", "second_", "value_"}
                                             : std::vector<const char*>{"feature_", "value_"};
  std::vector<std::string> names;
  for (std::uint32_t k = 0; k < program.meta().num_outputs; ++k)
    for (std::size_t i = 0; i < chosen.top(); ++i)
      for (const char* const part : parts)
        names.push_back(output_prefix(program, k) + part + std::to_string(i));
  return names;
}

/// Returns the names of a row's contributions: the features' names (or f0, f1, ...) and "expected". The name of an
/// interaction is two of these with a colon between them. In models of several outputs, the class label or the number
/// of the output stands before each name.
std::vector<std::string> explanation_names(const Program& program, OutputKind kind,
                                           const ChosenTerms& chosen) {
  if (chosen.top() != 0) return top_names(program, chosen);
  std::vector<std::string> terms = feature_names(program), names;
  if (!chosen.features().empty()) {
    const std::vector<std::string> all = std::move(terms);
    terms.clear();
    for (const std::uint32_t feature : chosen.features()) terms.push_back(all[feature]);
  }
  terms.emplace_back("expected");
  for (std::uint32_t k = 0; k < program.meta().num_outputs; ++k) {
    const std::string output = output_prefix(program, k);
    for (const std::string& term : terms) {
      if (kind != OutputKind::Interactions) names.push_back(output + term);
      for (std::size_t i = 0; kind == OutputKind::Interactions && i < terms.size(); ++i)
        names.push_back(formatted("{}{}:{}", output, term, terms[i]));
    }
  }
  return names;
}

/// Returns the names of the numbers of a row's uncertainty.
std::vector<std::string> uncertainty_names(const Program& program) {
  switch (program.uncertainty()[0].rule) {
    case UncertaintyRule::None:
      break;
    case UncertaintyRule::Scores:
      return {"mean", "variance"};
    case UncertaintyRule::Gaussian:
      return {"mean", "variance", "data_variance"};
    case UncertaintyRule::Binary:
    case UncertaintyRule::Classes:
      return {"data_entropy", "total_entropy"};
    case UncertaintyRule::Trees:
      std::vector<std::string> names;
      for (std::uint32_t k = 0; k < program.meta().num_outputs; ++k)
        for (const char* const number : {"mean", "variance"})
          names.push_back(output_prefix(program, k) + number);
      return names;
  }
  return {};
}

/// Returns the names of a row's numbers for outputs that are computed from each tree's leaf: tree_0, tree_1 and so on
/// for trees; after_10 and so on, with the number of rounds, for stages; ensemble_0 and so on for virtual ensembles. If
/// each of these has several numbers, the number of the output follows: tree_0_1. Uncertainty has names of its own.
std::vector<std::string> part_names(const Program& program, const RunOptions& options) {
  const std::uint32_t width = output_width(program, options.output, options.call),
                      outputs = program.meta().num_outputs;
  const bool staged = options.output == OutputKind::Staged;
  const bool several = staged ? outputs > 1 : !program.leaf_vectors().empty();
  const auto begins = program.round_begins();
  std::vector<std::string> names;
  if (width == 0) return names;
  if (options.output == OutputKind::Uncertainty) return uncertainty_names(program);
  if (options.output == OutputKind::VirtEnsembles) {
    for (std::uint32_t i = 0; i < width; ++i)
      names.push_back(
          formatted("ensemble_{}{}", i / outputs, outputs > 1 ? formatted("_{}", i % outputs) : ""));
    return names;
  }
  const Rounds rounds = rounds_of(program, options.call);
  for (std::uint32_t i = 0; i < width; ++i) {
    const std::uint32_t part = several ? i / outputs : i;
    const std::uint64_t after = rounds.begin + (std::uint64_t{part} + 1) * options.call.every;
    std::string name = staged ? formatted("after_{}", std::min<std::uint64_t>(after, rounds.end))
                              : formatted("tree_{}", begins[rounds.begin] + part);
    if (several) name += formatted("_{}", i % outputs);
    names.push_back(name);
  }
  return names;
}

/// Returns the name of a quantile's column, such as quantile_0.5.
std::string quantile_name(double quantile) {
  std::array<char, 32> text;
  return "quantile_" +
         std::string(text.data(), std::to_chars(text.data(), text.data() + text.size(), quantile).ptr);
}

/// Returns the header of CSV output: the name of the kept column, if there is one, and the names of the numbers.
std::vector<std::string> column_names(const Program& program, const RunOptions& options) {
  std::vector<std::string> names;
  if (!options.has_header) return names;
  if (options.rows.form.keep) names.push_back(*options.rows.form.keep);
  const bool parts = is_of_trees(options.output);
  if (parts || explains_scores(options.output)) {
    std::vector<std::string> more =
        parts ? part_names(program, options) : explanation_names(program, options.output, options.terms);
    std::move(more.begin(), more.end(), std::back_inserter(names));
    return names;
  }
  if (options.output == OutputKind::Quantile) {
    for (const double quantile : options.call.quantiles) names.push_back(quantile_name(quantile));
    return names;
  }
  const std::uint32_t width = output_width(program, options.output);
  const bool leaves = options.output == OutputKind::Leaf;
  const ProgramMeta& meta = program.meta();
  const bool labelled =
      !leaves && width > 1 && width == meta.num_class_labels && meta.class_rule != ClassRule::ArgmaxOfEach;
  const std::string kind = leaves ? "tree" : std::string(name_of(options.output));
  for (std::uint32_t i = 0; i < width; ++i)
    names.push_back(labelled              ? std::string(program.class_label(i))
                    : width > 1 || leaves ? formatted("{}_{}", kind, i)
                                          : kind);
  return names;
}

/// Writes a batch of predictions, `width` numbers for each row: all of them, or the strongest terms.
template <class T>
Result<void> write_batch(const RunOptions& options, std::span<const T> answers, std::size_t width,
                         std::span<const std::string> kept, std::uint32_t outputs, PredictionWriter& writer) {
  std::vector<T> strongest;
  if constexpr (std::is_floating_point_v<T>)
    for (std::size_t at = 0; options.terms.top() != 0 && at < answers.size(); at += width / outputs)
      options.terms.add_strongest(answers.subspan(at, width / outputs), strongest);
  FVM_TRY(writer.write(options.terms.top() != 0 ? std::span<const T>(strongest) : answers, kept));
  return writer.flush();
}

/// Adds a batch to a sparse matrix.
template <class T>
Result<void> write_batch(const RunOptions& options, std::span<const T> answers, std::size_t width,
                         std::span<const std::string>, std::uint32_t, SparseWriter& writer) {
  if constexpr (std::is_floating_point_v<T>)
    for (std::size_t at = 0; at < answers.size(); at += width)
      FVM_TRY(options.terms.add_sparse(answers.subspan(at, width), writer));
  return {};
}

/// Predicts all rows, batch after batch, and writes each batch as soon as it is predicted.
template <class T, class Writer>
Result<void> predict_batches(const Predictor& predictor, ResultType type, Batches& batches,
                             const RunOptions& options, std::optional<Margins>& margins, Profile& profile,
                             Writer& writer) {
  using Part = Profile::Part;
  Progress progress = batches.progress(options.out);
  const std::unique_ptr<Context> context = predictor.make_context();
  std::vector<T> answers;
  CallOptions call = options.call;
  call.features = options.terms.features();
  const std::size_t width = output_width(predictor.program(), options.output, call);
  const std::uint32_t outputs = predictor.program().meta().num_outputs;
  const auto write = [&] { return write_batch<T>(options, answers, width, batches.kept(), outputs, writer); };
  while (const std::size_t count = row_count(batches.rows())) {
    answers.resize(count * width);
    if (margins) {
      FVM_ASSIGN(call.base_margin, margins->next(count));
    }
    FVM_ASSIGN(const AnyRows rows,
               in_file(options.model,
                       profile.batch(predictor, *context, options.backend.on_host(), batches.rows())));
    FVM_TRY(profile.time(Part::Walk, [&] {
      return in_file(options.model,
                     predictor.predict_with(*context, rows, options.output, type, call, answers.data()));
    }));
    if constexpr (std::is_floating_point_v<T>) options.terms.divide(std::span(answers));
    FVM_TRY(profile.time(Part::Write, write));
    FVM_TRY(profile.time(Part::Read, [&] { return batches.next(); }));
    progress.show(batches.done());
  }
  return margins ? margins->finish() : Result<void>();
}

/// Returns the form of a row's predictions, without names. `labels` must outlive the result.
Result<PredictionForm> answers_of(const Program& program, const RunOptions& options,
                                  std::span<const std::string> labels) {
  const ProgramMeta& meta = program.meta();
  CallOptions call = options.call;
  call.features = options.terms.features();
  const std::uint32_t width = output_width(program, options.output, call);
  const bool explains = explains_scores(options.output);
  const bool parts = is_of_trees(options.output);
  const std::string name(name_of(options.output));
  if (width == 0 && explains) FVM_TRY(in_file(options.model, check_call(program, options.output, call)));
  if (width == 0)
    return in_file(options.model, refused(formatted("has no output {}: its objective is {}", name,
                                                    single_quoted(program.text(StringId::Objective)))));
  using Type = PredictionForm::Type;
  const bool quantiles = options.output == OutputKind::Quantile;
  const bool wide = meta.score_type == ScalarType::Float64 || quantiles;
  const bool leaves = options.output == OutputKind::Leaf;
  const Type type = options.output == OutputKind::Class ? Type::Int64
                    : leaves                            ? Type::Int32
                    : wide                              ? Type::Float64
                                                        : Type::Float32;
  PredictionForm form{width, type, labels, leaves || explains || parts || quantiles, {}, {}};
  const std::size_t terms =
      (call.features.empty() ? std::size_t{meta.num_features} : call.features.size()) + 1;
  if (explains && meta.num_outputs > 1) form.inner = {meta.num_outputs, terms};
  if (options.output == OutputKind::Staged || options.output == OutputKind::VirtEnsembles ||
      (options.output == OutputKind::Trees && !program.leaf_vectors().empty()))
    form.inner = {width / meta.num_outputs, meta.num_outputs};
  if (options.output == OutputKind::Uncertainty && width > 3) form.inner = {meta.num_outputs, 2};
  if (options.output == OutputKind::Interactions) {
    if (form.inner.empty()) form.inner = {terms};
    form.inner.push_back(terms);
    const std::size_t bytes = width * size_of(type);
    if (bytes > options.max_bytes)
      return in_file(
          options.model,
          refused(formatted("the interactions of a row take {} bytes, more than --max-bytes {} allows; "
                            "--features chooses some features{}",
                            bytes, options.max_bytes,
                            options.terms.sparse() || options.terms.top() != 0
                                ? ""
                                : ", --top and --sparse leave out those that no tree tests")));
  }
  if (const std::size_t top = options.terms.top(); top != 0) {
    form.group = options.terms.top_width();
    form.inner = {top, form.group};
    if (meta.num_outputs > 1) form.inner.insert(form.inner.begin(), meta.num_outputs);
    form.columns = meta.num_outputs * top * form.group;
  }
  return form;
}

Result<void> predict_all(const Predictor& predictor, Batches& batches, const RunOptions& options,
                         std::optional<Margins>& margins, const PredictionForm& form, Profile& profile) {
  using Type = PredictionForm::Type;
  if (options.terms.sparse()) {
    const bool wide = form.type == Type::Float64;
    FVM_ASSIGN(SparseWriter writer, SparseWriter::open(options.out, options.terms.sparse_columns(), wide));
    FVM_TRY(wide ? predict_batches<double>(predictor, ResultType::Float64, batches, options, margins, profile,
                                           writer)
                 : predict_batches<float>(predictor, ResultType::Float32, batches, options, margins, profile,
                                          writer));
    return profile.time(Profile::Part::Write, [&] { return writer.finish(); });
  }
  FVM_ASSIGN(PredictionWriter writer, PredictionWriter::open(options.out, form));
  const auto predict = [&]<class T>(ResultType type) {
    return predict_batches<T>(predictor, type, batches, options, margins, profile, writer);
  };
  if (form.type == Type::Int64)
    FVM_TRY(predict.operator()<std::int64_t>(ResultType::Int64));
  else if (form.type == Type::Int32)
    FVM_TRY(predict.operator()<std::int32_t>(ResultType::Int32));
  else if (form.type == Type::Float64)
    FVM_TRY(predict.operator()<double>(ResultType::Float64));
  else
    FVM_TRY(predict.operator()<float>(ResultType::Float32));
  return profile.time(Profile::Part::Write, [&] { return writer.finish(); });
}

Result<void> run_predict(const Arguments& arguments) {
  FVM_ASSIGN(RunOptions options, read_predict_options(arguments));
  Profile profile(arguments.has("profile"));
  using Part = Profile::Part;
  FVM_ASSIGN(const RequestedProgram asked, profile.time(Part::Prepare, [&] {
    return program_to_call(arguments, options.model, options.backend.schedule());
  }));
  const Program& program = asked.program;
  options.call.rounds = asked.rounds;
  if (options.call.rounds || is_of_trees(options.output) || options.output == OutputKind::Quantile)
    FVM_TRY(in_file(options.model, check_call(program, options.output, options.call)));
  FVM_TRY(options.terms.find(program, options.output, options.call, options.model));
  const std::vector<std::string> labels =
      options.terms.top() != 0 ? feature_names(program) : class_labels(program, options.output);
  FVM_ASSIGN(PredictionForm form, answers_of(program, options, labels));
  // after answers_of has refused rows with too many numbers
  const std::vector<std::string> names = column_names(program, options);
  form.names = names;
  FVM_ASSIGN(const std::unique_ptr<Predictor> predictor, profile.time(Part::Prepare, [&] {
    return make_predictor(options.backend, program, options.model);
  }));
  // Opens the input before the output, so that rows which cannot be read leave no output behind.
  FVM_ASSIGN(Batches batches, profile.time(Part::Read, [&] {
    CallOptions call = options.call;
    call.features = options.terms.features();
    const std::size_t width = output_width(program, options.output, call);
    return Batches::open(options.rows, program, width * size_of(form.type));
  }));
  std::optional<Margins> margins;
  if (!options.margins.empty()) {
    FVM_ASSIGN(margins, Margins::open(options.margins, program));
  }
  FVM_TRY(predict_all(*predictor, batches, options, margins, form, profile));
  if (profile.is_on()) std::fputs(profile.text(*predictor).c_str(), stderr);
  return {};
}

std::string predict_notes() {
  return target_notes() +
         "\n"
         "Predictions have the type of the model's sums: float32 for XGBoost and YDF, float64 for LightGBM, CatBoost,\n"
         "scikit-learn and ONNX, the file's type for Treelite and PMML. For n rows, arrays have the shape\n"
         "  raw              (n,), or (n, k) if the model has k outputs\n"
         "  value            likewise, but (n, 2) for the probabilities of two classes from one output, and (n,) for\n"
         "                   models that predict a label or a median\n"
         "  class            (n,), or (n, targets) if each target has classes of its own, int64: the label's index\n"
         "                   (in CSV the model's own label, if it has labels)\n"
         "  leaf             (n, trees), int32\n"
         "  contributions    (n, features + 1), or (n, k, features + 1); approx-contributions likewise\n"
         "  interactions     (n, features + 1, features + 1), or (n, k, features + 1, features + 1)\n"
         "  trees            (n, trees), or (n, trees, k) if leaves are vectors\n"
         "  staged           (n, stages, k)\n"
         "  virt-ensembles   (n, ensembles, k)\n"
         "  uncertainty      (n, 2) or (n, 3); (n, k, 2) for an averaged forest with several outputs\n"
         "  quantile         (n, quantiles), float64\n"
         "With --top K, contributions have the shape (n, K, 2) and interactions (n, K, 3), or (n, k, K, 2) and\n"
         "(n, k, K, 3). CSV numbers are the shortest text that reads back to the same bits.\n"
         "The content of ROWS tells its format, also inside gzip; the name of OUT says what is written.\n"
         "Rows are read, predicted and written batch by batch; only one batch is in memory, except that an\n"
         "NPY array in Fortran order is read whole. A program that writes rows into a pipe and waits for the\n"
         "answers to each gets them with --batch 1.\n"
         "A libsvm file begins each row with a label, which is not used. Features that a sparse row does not\n"
         "list are missing for XGBoost models and 0 for others, as in the trainers.\n";
}

}  // namespace

const Command kRun = {
    "run",
    "predicts rows with a model or a program",
    {"run MODEL ROWS [-o OUT] [options]"},
    {{"MODEL", "a trainer's model file, or a .fvm program; - is standard input"},
     {"ROWS",
      "a CSV table (an empty cell is missing; named columns are matched to the model's features), an .npy or .npz "
      "array (rows, features), a CSR matrix of scipy.sparse.save_npz, libsvm or JSON lines, plain or gzip, or a .fvr "
      "file of forestvm encode; - is standard input"}},
    {{"out", 'o', "OUT",
      "where predictions go: a name that ends in .npy or .csv, or has no ending (CSV), with --sparse .npz; - (default) "
      "is CSV on standard output",
      kFiles},
     {"output",
      '\0',
      "KIND",
      "value (default: what the trainer's predict gives), raw (the score before the transform), class, "
      "leaf (the number of each tree's leaf, as the trainer numbers a tree's nodes), contributions (each feature's exact "
      "SHAP contribution to the raw score by the paths of the trees, then the expected score), interactions (what each "
      "two features contribute together), approx-contributions (changes of the mean score at the splits of each feature on "
      "a row's way), trees (what each tree's leaf adds to the raw score), staged (the raw score "
      "after every few rounds, and after the last), virt-ensembles (the raw scores of CatBoost's virtual ensembles), "
      "uncertainty (CatBoost's TotalUncertainty; of averaged forests the mean and variance of the trees' scores) or "
      "quantile (quantiles of the training rows' targets in the row's leaves)",
      {names_of<OutputKind>}},
     {"output-header", '\0', "",
      "begins CSV output with a line of names: the class labels, or value, raw, class, value_0, ..., tree_0, ...; of "
      "contributions the features' names and expected, of interactions two of them each; of stages after_ and the number "
      "of rounds"},
     {"every", '\0', "R", "rounds from one stage to the next of --output staged, default 1"},
     {"ensembles", '\0', "N",
      "number of virtual ensembles of --output virt-ensembles and uncertainty, default 10, at most half of the rounds"},
     {"quantiles", '\0', "Q,...",
      "the quantiles of --output quantile, numbers from 0 to 1; default 0.1,0.5,0.9"},
     kFeaturesOption,
     kTopOption,
     kSparseOption,
     kAveragedOption,
     kScheduleOption,
     kBackendOption,
     kDeviceOption,
     kTargetOption,
     {"threads", '\0', "N", "number of threads; default: all cores"},
     {"batch", '\0', "N",
      "rows per call, default 65536 or 32 MiB of rows and predictions; predictions do not depend on it"},
     kFormatOption,
     kHeaderOption,
     kSeparatorOption,
     kNaOption,
     kExtraColumnsOption,
     kKeepOption,
     kArrayOption,
     kIndexBaseOption,
     kCategoriesOption,
     kMissingOption,
     kRoundsOption,
     kBaseMarginOption,
     kBackgroundOption,
     kSamplesOption,
     {"early-stop", '\0', "margin=M,every=N",
      "after every N rounds (10), rows whose raw scores are further apart than M (10) get no more trees, as with "
      "LightGBM's pred_early_stop"},
     {"max-bytes", '\0', "N",
      "the most bytes that the interactions of a row may take, default 67108864; models of more features are refused"},
     {"profile", '\0', "",
      "prints on standard error what reading, encoding, walking and writing took, and why the plan was chosen; on the "
      "host rows are then encoded before they are walked, not block by block"},
     kContractOption,
     kStrictOption},
    "  forestvm run model.json rows.csv\n"
    "  forestvm run model.ubj rows.npy -o predictions.npy --output raw --threads 2\n",
    predict_notes,
    run_predict,
};

}  // namespace forestvm::cli
