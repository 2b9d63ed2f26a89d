// forestvm run: rows -> predictions, with a model (compiled first) or a program.
// Follow a row: RowReader (cli/io) -> predict_all below -> Predictor::predict (vm/host).
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/names.hpp>
#include <forestvm/program.hpp>

#include "cli/commands.hpp"
#include "cli/io/csv.hpp"
#include "cli/io/predictions.hpp"
#include "cli/io/quote.hpp"
#include "cli/io/rows.hpp"
#include "cli/program_file.hpp"
#include "cli/progress.hpp"

namespace forestvm::cli {
namespace {

constexpr std::uint64_t kDefaultBatch = 65'536;
constexpr std::size_t kDefaultBatchBytes = std::size_t{64} << 20;  ///< of rows, where those would be more
constexpr std::uint64_t kMostRows = std::uint64_t{1} << 31;
constexpr std::uint64_t kMostThreads = 4096;

constexpr std::array<std::string_view, 2> kBackendNames = {"auto", "host"};

/// The command line, understood.
struct RunOptions {
  std::string model, rows, out;
  OutputKind output = OutputKind::Value;
  BackendOptions backend;
  std::optional<std::size_t> batch;
  std::optional<float> missing;
};

Result<RunOptions> understand(const Arguments& arguments) {
  RunOptions options;
  FVM_ASSIGN(options.model, required(arguments, "MODEL"));
  FVM_ASSIGN(options.rows, required(arguments, "ROWS"));
  options.out = arguments.get("out", "-");
  FVM_ASSIGN(options.output, arguments.choice("output", options.output));
  FVM_TRY(arguments.choice("backend", kBackendNames, 0));
  options.backend.target = arguments.get("target", "auto");
  FVM_ASSIGN(const std::uint64_t threads, arguments.number("threads", 1, kMostThreads, 0));
  options.backend.threads = static_cast<unsigned>(threads);
  if (arguments.has("batch")) {
    FVM_ASSIGN(options.batch, arguments.number("batch", 1, kMostRows, kDefaultBatch));
  }
  if (arguments.has("missing")) {
    options.missing = parse_float(arguments.get("missing"));
    if (!options.missing)
      return usage_error("--missing " + in_quotes(arguments.get("missing")) + ": expected a number");
  }
  FVM_TRY(expect_other_file(options.out, options.model));
  FVM_TRY(expect_other_file(options.out, options.rows));
  return options;
}

std::vector<std::string> strings(const Program& program, std::uint32_t count,
                                 std::string_view (Program::*get)(std::uint32_t) const) {
  std::vector<std::string> out;
  for (std::uint32_t i = 0; i < count; ++i) out.emplace_back((program.*get)(i));
  return out;
}

/// A batch of rows, as often as there is one.
class Batches {
 public:
  Batches(RowReader reader, const RunOptions& options, std::size_t width)
      : reader_(std::move(reader)), options_(options) {
    const std::size_t most = std::max<std::size_t>(kDefaultBatchBytes / sizeof(float) / width, 1);
    size_ = options.batch.value_or(std::min<std::size_t>(kDefaultBatch, most));
    if (reader_.count()) size_ = std::max<std::size_t>(std::min(size_, *reader_.count()), 1);
  }

  Result<void> next() {
    FVM_TRY(in_file(options_.rows, reader_.next(size_, rows_)));
    if (options_.missing) mark_missing(rows_, *options_.missing);
    return {};
  }

  const Rows& rows() const { return rows_; }
  const RowReader& reader() const { return reader_; }

 private:
  RowReader reader_;
  const RunOptions& options_;
  std::size_t size_;
  Rows rows_;
};

/// Predicts all rows, batch after batch, and writes each as soon as it is there. The first is read.
template <class T, class Predict>
Result<void> predict_batches(Batches& batches, const RunOptions& options, std::size_t width,
                             PredictionWriter& writer, Predict predict) {
  // Rows where the file says how many there are, or else bytes of it.
  const auto left = [&] { return static_cast<std::size_t>(batches.reader().bytes_left().value_or(0)); };
  const bool counted = batches.reader().count().has_value();
  const std::size_t total = batches.reader().count().value_or(left());
  Progress progress(2, total, std::chrono::seconds(1), false, counted ? "rows" : "bytes");
  std::vector<T> answers;
  for (std::size_t done = 0; batches.rows().count != 0;) {
    const Rows& rows = batches.rows();
    answers.resize(rows.count * width);
    FVM_TRY(in_file(options.model,
                    predict(RowBlock{rows.values.data(), rows.count, rows.width}, answers.data())));
    FVM_TRY(writer.write(std::span<const T>(answers)));
    done += rows.count;
    progress.show(counted ? done : total - std::min(total, left()));
    FVM_TRY(batches.next());
  }
  return {};
}

Result<void> predict_all(const Predictor& predictor, Batches& batches, const RunOptions& options) {
  const ProgramMeta& meta = predictor.program().meta();
  const std::uint32_t width = output_width(meta, options.output);
  if (width == 0)
    return in_file(options.model, refused("", "has no output " + std::string(name_of(options.output)) +
                                                  ": its objective is " +
                                                  in_quotes(predictor.program().text(StringId::Objective))));
  const bool classes = options.output == OutputKind::Class, leaves = options.output == OutputKind::Leaf;
  const auto labels =
      strings(predictor.program(), classes ? meta.num_class_labels : 0, &Program::class_label);
  using Type = PredictionForm::Type;
  const bool wide = meta.score_type == ScalarType::Float64;
  const Type type = classes ? Type::Int64 : leaves ? Type::Int32 : wide ? Type::Float64 : Type::Float32;
  const PredictionForm form{width, type, labels, leaves};
  FVM_ASSIGN(PredictionWriter writer, PredictionWriter::open(options.out, form));
  const std::unique_ptr<Context> context = predictor.make_context();
  const auto predict = [&](const RowBlock& block, float* out) {
    return predictor.predict(*context, block, options.output, out);
  };
  const auto predict_wide = [&](const RowBlock& block, double* out) {
    return predictor.predict_wide(*context, block, options.output, out);
  };
  const auto predict_class = [&](const RowBlock& block, std::int64_t* out) {
    return predictor.predict_class(*context, block, out);
  };
  const auto predict_leaf = [&](const RowBlock& block, std::int32_t* out) {
    return predictor.predict_leaf(*context, block, out);
  };
  if (classes)
    FVM_TRY(predict_batches<std::int64_t>(batches, options, width, writer, predict_class));
  else if (leaves)
    FVM_TRY(predict_batches<std::int32_t>(batches, options, width, writer, predict_leaf));
  else if (wide)
    FVM_TRY(predict_batches<double>(batches, options, width, writer, predict_wide));
  else
    FVM_TRY(predict_batches<float>(batches, options, width, writer, predict));
  return writer.finish();
}

Result<void> run(const Arguments& arguments) {
  FVM_ASSIGN(const RunOptions options, understand(arguments));
  FVM_ASSIGN(const Program program, program_as_asked(arguments, options.model));
  FVM_ASSIGN(const std::unique_ptr<Predictor> predictor, host_backend(program, options.backend));
  const ProgramMeta& meta = program.meta();
  const auto names = strings(program, meta.num_feature_names, &Program::feature_name);
  FVM_ASSIGN(RowReader reader,
             in_file(options.rows, RowReader::open(options.rows, {meta.num_features, names,
                                                                  meta.score_type == ScalarType::Float64})));
  Batches batches(std::move(reader), options, std::max<std::size_t>(meta.num_features, 1));
  FVM_TRY(batches.next());  // rows that cannot be read leave no output behind
  return predict_all(*predictor, batches, options);
}

std::string notes() {
  std::string text = schedule_notes() + "\nTargets of this build, best first:";
  for (const std::string_view target : host_targets()) text += " " + std::string(target);
  return text +
         "\n\nWritten: the trainer's type, float32 or (LightGBM's) float64, (n,) for one output and (n, k)\n"
         "for k; class: the label's index as int64 (in CSV the model's own label, where it has labels);\n"
         "leaf: int32, (n, trees). CSV numbers are the shortest text that reads back to the same bits.\n"
         "NPY and CSV rows are told apart by their content; OUT is written as its name says.\n"
         "Rows are read, predicted and written batch by batch, in as much memory as a batch takes (but an "
         "NPY\n"
         "array in Fortran order is read whole).\n";
}

}  // namespace

const Command kRun = {
    "run",
    "predicts rows with a model or a program",
    {"run MODEL ROWS [-o OUT] [options]"},
    {{"MODEL", "a trainer's model file, or a .fvm program"},
     {"ROWS",
      "an .npy array (rows, features) or a .csv file (header detected, columns then matched to the model's "
      "feature names, empty cell = missing); - is standard input"}},
    {{"out", 'o', "OUT",
      "where predictions go: a name ending in .npy, or CSV; - (default) is CSV on standard output"},
     {"output", '\0', "KIND",
      "value (default: what the trainer's predict gives), raw (its score), class, or leaf (the "
      "number of each tree's leaf, as the trainer counts a tree's nodes)"},
     kScheduleOption,
     {"backend", '\0', "B", "auto (default) or host"},
     {"target", '\0', "T",
      "auto (default: FORESTVM_TARGET, or else the best this CPU runs), or a name from the list below"},
     {"threads", '\0', "N", "default: all cores; 1 runs inline"},
     {"batch", '\0', "N", "rows per call, default 65536 or 64 MiB; predictions do not depend on it"},
     {"missing", '\0', "X", "rows' values equal to X (as float32) are missing, as NaN always is"},
     kContractOption,
     kStrictOption},
    "  forestvm run model.json rows.csv\n"
    "  forestvm run model.ubj rows.npy -o predictions.npy --output raw --threads 2\n",
    notes,
    run,
};

}  // namespace forestvm::cli
