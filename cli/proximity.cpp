// forestvm proximity: counts, for each row and each of the rows to compare with, the trees in which both reach the same
// leaf. The leaves of the rows to compare with are kept, packed; the others are read, compared and written batch by
// batch.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/program.hpp>
#include <forestvm/proximity.hpp>

#include "cli/backend.hpp"
#include "cli/batches.hpp"
#include "cli/commands.hpp"
#include "cli/io/predictions.hpp"
#include "cli/program_file.hpp"
#include "cli/progress.hpp"

namespace forestvm::cli {
namespace {

/// The most bytes of packed leaves, unless --max-bytes says otherwise.
constexpr std::uint64_t kDefaultMaxBytes = std::uint64_t{1} << 30;

struct ProximityOptions {
  std::string model, out;
  BatchOptions rows, others;
  bool has_others = false;
  std::uint64_t max_bytes = 0;
  std::optional<std::size_t> top;
  bool weighs = false;
  BackendOptions backend;
};

Result<ProximityOptions> read_proximity_options(const Arguments& arguments) {
  ProximityOptions options;
  FVM_ASSIGN(options.model, required(arguments, "MODEL"));
  FVM_ASSIGN(options.rows, batch_options(arguments));
  options.has_others = arguments.has("OTHERS");
  options.others = options.rows;
  if (options.has_others) options.others.path = arguments.get("OTHERS");
  FVM_TRY(expect_one_standard_input(options.model, options.rows.path));
  FVM_TRY(expect_one_standard_input(options.model, options.others.path));
  if (options.has_others && options.rows.path == "-" && options.others.path == "-")
    return usage_error("ROWS and OTHERS cannot both be standard input");
  options.out = arguments.get("out", "-");
  FVM_TRY(check_predictions_name(options.out));
  for (const std::string& input : {options.model, options.rows.path, options.others.path})
    FVM_TRY(expect_other_file(options.out, input));
  if (arguments.has("top")) {
    FVM_ASSIGN(options.top, arguments.number("top", 1, UINT32_MAX, 1));
  }
  options.weighs = arguments.has("weights");
  FVM_ASSIGN(options.max_bytes, arguments.number("max-bytes", 1, UINT64_MAX, kDefaultMaxBytes));
  options.backend.target = arguments.get("target", "auto");
  FVM_ASSIGN(const std::uint64_t threads, arguments.number("threads", 1, kMaxThreads, 0));
  options.backend.threads = static_cast<unsigned>(threads);
  return options;
}

/// A predictor of leaf numbers, and the memory of its calls.
struct LeafFinder {
  const std::string& model;
  const Predictor& predictor;
  std::unique_ptr<Context> context;
  std::size_t trees;
  std::vector<std::int32_t> leaves{};

  Result<void> find(const AnyRows& rows) {
    leaves.resize(row_count(rows) * trees);
    return in_file(model, predictor.predict_leaf(*context, rows, leaves.data()));
  }
};

/// Keeps the leaves of the rows to compare with.
Result<KeptLeaves> keep(LeafFinder& finder, const ProximityOptions& options) {
  FVM_ASSIGN(KeptLeaves kept, KeptLeaves::make(finder.trees, options.backend.target));
  FVM_ASSIGN(Batches batches,
             Batches::open(options.others, finder.predictor.program(), finder.trees * sizeof(std::int32_t)));
  while (row_count(batches.rows()) != 0) {
    FVM_TRY(finder.find(batches.rows()));
    FVM_TRY(in_file(options.model, kept.add(finder.leaves)));
    if (kept.bytes() > options.max_bytes)
      return in_file(
          options.others.path,
          refused(formatted("the leaves of its first {} rows take {} bytes, more than --max-bytes {} allows",
                            kept.rows(), kept.bytes(), options.max_bytes)));
    FVM_TRY(batches.next());
  }
  const std::size_t others = kept.rows() - (options.has_others || kept.rows() == 0 ? 0 : 1);
  if (kept.rows() == 0) return in_file(options.others.path, refused("has no rows to compare with"));
  if (options.top && *options.top > others)
    return in_file(options.others.path,
                   refused(formatted("--top {}: there are {} rows to compare with", *options.top, others)));
  return kept;
}

/// Writes the scores of rows, or their nearest neighbours.
template <class Score>
class ScoreWriter {
 public:
  static Result<ScoreWriter> open(const ProximityOptions& options, std::size_t others) {
    using Type = PredictionForm::Type;
    PredictionForm form{others, std::is_same_v<Score, double> ? Type::Float64 : Type::Int32, {}, true, {},
                        {}};
    if (options.top) {
      if (form.type == Type::Int32) form.type = Type::Int64;
      form.columns = *options.top * 2;
      form.inner = {*options.top, 2};
    }
    FVM_ASSIGN(PredictionWriter writer, PredictionWriter::open(options.out, form));
    return ScoreWriter(options, others, std::move(writer));
  }

  std::span<Score> room(std::size_t rows) {
    scores_.resize(rows * others_);
    return scores_;
  }

  /// Writes the scores that the caller has put into room(). If the rows are kept ones, `first` is the number of the
  /// first.
  Result<void> write(std::optional<std::size_t> first) {
    if (!top_) {
      FVM_TRY(writer_.write(std::span<const Score>(scores_)));
      return writer_.flush();
    }
    pairs_.clear();
    for (std::size_t begin = 0; begin < scores_.size(); begin += others_) {
      const std::span<const Score> mine(scores_.data() + begin, others_);
      const auto self = first ? std::optional(*first + begin / others_) : std::nullopt;
      for (const Neighbour<Score>& neighbour : nearest(mine, *top_, self)) {
        pairs_.push_back(static_cast<Number>(neighbour.row));
        pairs_.push_back(static_cast<Number>(neighbour.score));
      }
    }
    FVM_TRY(writer_.write(std::span<const Number>(pairs_)));
    return writer_.flush();
  }

  Result<void> finish() { return writer_.finish(); }

 private:
  using Number = std::conditional_t<std::is_same_v<Score, double>, double, std::int64_t>;

  ScoreWriter(const ProximityOptions& options, std::size_t others, PredictionWriter writer)
      : top_(options.top), others_(others), writer_(std::move(writer)) {}

  std::optional<std::size_t> top_;
  std::size_t others_;
  PredictionWriter writer_;
  std::vector<Score> scores_;
  std::vector<Number> pairs_;  ///< Number and score of each neighbour.
};

/// Compares all rows with the kept ones. Without OTHERS, the rows themselves are the kept ones.
template <class Score>
Result<void> compare(LeafFinder& finder, const KeptLeaves& kept, const ProximityOptions& options) {
  constexpr bool kWeighs = std::is_same_v<Score, double>;
  const std::size_t others = kept.rows();
  if (!options.has_others) {
    FVM_ASSIGN(auto writer, ScoreWriter<Score>::open(options, others));
    // Comparing by weights takes so long that pairs which are compared once pay for more memory.
    constexpr std::size_t kScoreBytes = std::size_t{kWeighs ? 256 : 32} << 20;
    const std::size_t part = kept.rows_together(kScoreBytes / sizeof(Score) / others);
    for (std::size_t first = 0; first < others; first += part) {
      const std::size_t rows = std::min(part, others - first);
      if constexpr (kWeighs)
        FVM_TRY(kept.weigh_kept(first, rows, writer.room(rows)));
      else
        FVM_TRY(kept.count_kept(first, rows, writer.room(rows)));
      FVM_TRY(writer.write(first));
    }
    return writer.finish();
  }
  const std::size_t answer_bytes = others * sizeof(Score) + finder.trees * sizeof(std::int32_t);
  FVM_ASSIGN(Batches batches, Batches::open(options.rows, finder.predictor.program(), answer_bytes));
  FVM_ASSIGN(auto writer, ScoreWriter<Score>::open(options, others));
  Progress progress = batches.progress(options.out);
  while (const std::size_t count = row_count(batches.rows())) {
    FVM_TRY(finder.find(batches.rows()));
    if constexpr (kWeighs)
      FVM_TRY(kept.weigh(finder.leaves, writer.room(count)));
    else
      FVM_TRY(kept.count(finder.leaves, writer.room(count)));
    FVM_TRY(writer.write({}));
    FVM_TRY(batches.next());
    progress.show(batches.done());
  }
  return writer.finish();
}

Result<void> run_proximity(const Arguments& arguments) {
  FVM_ASSIGN(const ProximityOptions options, read_proximity_options(arguments));
  FVM_ASSIGN(const Program program, requested_program(arguments, options.model));
  const std::size_t trees = output_width(program, OutputKind::Leaf);
  if (trees == 0) return in_file(options.model, refused("has no trees, and so no leaves to compare"));
  FVM_ASSIGN(const std::unique_ptr<Predictor> predictor,
             in_file(options.model, host_backend(program, options.backend)));
  LeafFinder finder{options.model, *predictor, predictor->make_context(), trees};
  FVM_ASSIGN(const KeptLeaves kept, keep(finder, options));
  return options.weighs ? compare<double>(finder, kept, options)
                        : compare<std::int32_t>(finder, kept, options);
}

std::string proximity_notes() {
  return "Writes a row of numbers for each row of ROWS: the number of trees in which it shares a leaf with each row\n"
         "of OTHERS, or of ROWS itself if there are no OTHERS. NPY arrays are int32 of shape (rows, others); with\n"
         "--weights float64. With --top K they are int64 (with --weights float64) of shape (rows, K, 2): the number\n"
         "of the neighbour, counted from 0, and its count or weight, the largest first, of equal ones the first row.\n"
         "A row is no neighbour of itself. Numbers do not depend on schedule, target, threads and batches.\n"
         "The leaves of OTHERS stay in memory, a byte for each tree of at most 255 leaves that rows reach, otherwise\n"
         "two bytes or four. ROWS are read, compared and written batch by batch. Without OTHERS, up to 32 MiB of counts\n"
         "or 256 MiB of weights are in memory, and two rows whose numbers are there are compared once.\n";
}

}  // namespace

const Command kProximity = {
    "proximity",
    "counts the trees in which rows share a leaf",
    {"proximity MODEL ROWS [OTHERS] [-o OUT] [options]"},
    {{"MODEL", "a trainer's model file, or a .fvm program; - is standard input"},
     {"ROWS", "as for run; - is standard input"},
     {"OTHERS", "the rows to compare with, in the form of ROWS; default: ROWS themselves"}},
    {{"out", 'o', "OUT",
      "where numbers go: a name that ends in .npy or .csv, or has no ending (CSV); - (default) is CSV on standard "
      "output",
      kFiles},
     {"top", '\0', "K", "writes only the K rows that share the most leaves, or have the largest weights"},
     {"weights", '\0', "",
      "counts each shared leaf as 1 / (number of OTHERS in it), divided by the number of trees: the weights that "
      "the rows have in a forest's answer"},
     {"max-bytes", '\0', "N",
      "the most bytes that the leaves of OTHERS may take in memory, default 1073741824"},
     {"target", '\0', "T", "as for run", kTargetOption.values},
     {"threads", '\0', "N", "number of threads that find leaves; default: all cores"},
     {"batch", '\0', "N", "rows per call, default 65536 or 32 MiB of rows and numbers"},
     FVM_ROW_OPTIONS,
     kMissingOption,
     kRoundsOption},
    "  forestvm proximity model.json rows.csv --top 5\n"
    "  forestvm proximity model.json new.npy known.npy -o weights.npy --weights\n",
    proximity_notes,
    run_proximity,
};

}  // namespace forestvm::cli
