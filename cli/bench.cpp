// forestvm bench: how long predictions take in this process. Rows are float32 or codes in memory; one caller
// makes whole predict calls for raw scores. A sample is about a millisecond of calls; with batches of one
// row, calls are also timed one by one.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/core/encoder.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/program.hpp>

#include "cli/backend.hpp"
#include "cli/commands.hpp"
#include "cli/drawn_rows.hpp"
#include "cli/io/cell_value.hpp"
#include "cli/io/coded_file.hpp"
#include "cli/io/gzip_source.hpp"
#include "cli/io/output_file.hpp"
#include "cli/io/quote.hpp"
#include "cli/program_file.hpp"
#include "cli/progress.hpp"
#include "cli/row_options.hpp"

namespace forestvm::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::uint64_t kMaxBatch = std::uint64_t{1} << 24;
constexpr std::uint64_t kMaxThreads = 4096;
constexpr float kMaxSeconds = 3600;
constexpr std::uint64_t kMaxValues = std::uint64_t{1} << 30;  // most values of all rows: 4 GiB
constexpr std::uint64_t kDrawnRows = 16'384;                  // rows drawn if they have at most kDrawnValues
constexpr std::uint64_t kDrawnValues = std::uint64_t{1} << 25;  // most values drawn: 128 MiB
constexpr std::size_t kMaxSingleCalls = 1'000'000;
constexpr Seconds kSample{1e-3};

/// The options of the command line.
struct BenchOptions {
  std::string model, rows;
  RowForm form;
  BackendChoice backend;
  std::vector<std::uint64_t> batches, threads;
  Seconds seconds{1};  ///< time of a measurement
};

/// Times of calls with one row, in ns, less the time that reading the clock takes.
struct CallTimes {
  double p50, p99, p999;
};

/// One line of the table.
struct Measurement {
  std::uint64_t batch, threads;
  std::string runs_on;
  double row_min, row_median;  ///< time of a row in microseconds: the least and the median of the samples
  std::uint64_t calls;
  std::optional<CallTimes> single_calls;
};

/// Rows in which a whole batch follows each of the first `count`: the first rows are repeated at the end.
/// Batches of encoded rows begin at a block of codes.
struct RepeatedRows {
  std::size_t count = 0;
  std::size_t width = 0;                ///< values or codes per row
  Rows dense{};                         ///< the rows, repeated; none if they are encoded
  std::unique_ptr<CodeMemory> codes{};  ///< memory of encoded rows; null: the rows are not encoded
  std::uint64_t encoder = 0;

  AnyRows batch(std::size_t first, std::size_t rows) const {
    if (codes == nullptr) return dense.block(first, rows);
    return CodedRows{codes->data() + code_offset(first, width), rows, width, coded_bytes(rows, width),
                     encoder};
  }

  /// Returns where the batch after the one at `first` begins.
  std::size_t after(std::size_t first, std::size_t rows) const {
    const std::size_t step = codes == nullptr ? rows : (rows + kCodeRows - 1) / kCodeRows * kCodeRows;
    return first + step < count ? first + step : (first + step) % count;
  }
};

Result<BenchOptions> understand(const Arguments& arguments) {
  BenchOptions options;
  FVM_ASSIGN(options.model, required(arguments, "MODEL"));
  options.rows = arguments.get("ROWS");
  FVM_TRY(expect_one_standard_input(options.model, options.rows));
  FVM_ASSIGN(options.form, row_options(arguments));
  FVM_ASSIGN(options.backend, choose_backend(arguments));
  FVM_ASSIGN(options.batches, arguments.numbers("batch", 1, kMaxBatch, {1, 64, 4096}));
  FVM_ASSIGN(options.threads, arguments.numbers("threads", 1, kMaxThreads, {1}));
  if (arguments.has("seconds")) {
    const auto seconds = parse_number<float>(arguments.get("seconds"));
    if (!seconds || !(*seconds > 0 && *seconds <= kMaxSeconds))
      return usage_error("--seconds " + in_quotes(arguments.get("seconds")) +
                         ": expected a number above 0, at most 3600");
    options.seconds = Seconds(*seconds);
  }
  return options;
}

Error too_large(std::uint64_t batch, const std::string& rows) {
  return usage_error("--batch '" + std::to_string(batch) + "': with " + rows + " more than 4 GiB");
}

Result<RepeatedRows> repeated(Rows rows, std::uint64_t batch) {
  if ((rows.count + batch) * std::max<std::size_t>(rows.width, 1) > kMaxValues)
    return too_large(batch,
                     std::to_string(rows.count) + " rows of " + std::to_string(rows.width) + " features");
  const auto repeat = [&](auto& values) {
    values.reserve((rows.count + batch) * rows.width);
    while (values.size() < (rows.count + batch) * rows.width)
      values.push_back(values[values.size() - rows.count * rows.width]);
  };
  rows.type == RowType::Float64 ? repeat(rows.wide_values) : repeat(rows.values);
  const std::size_t count = rows.count, width = rows.width;
  return RepeatedRows{count, width, std::move(rows)};
}

/// Reads whole blocks of codes. The last, incomplete block of a file is used only if there is no other.
Result<RepeatedRows> repeated(CodedReader reader, std::uint64_t batch) {
  RepeatedRows rows;
  rows.codes = std::make_unique<CodeMemory>();
  for (;;) {
    FVM_ASSIGN(const CodedRows more, reader.next());
    if (more.count == 0) break;
    rows.width = more.columns;
    rows.encoder = more.encoder;
    const std::size_t whole = std::max<std::size_t>(more.count / kCodeRows, rows.count == 0 ? 1 : 0);
    const std::size_t had = code_bytes(rows.count, rows.width), bytes = whole * rows.width * kCodeRows;
    if ((had + bytes) / sizeof(float) > kMaxValues) return refused("", "has more than 4 GiB of codes");
    std::copy_n(more.codes, bytes, rows.codes->resize(had + bytes) + had);
    rows.count += whole * kCodeRows;
  }
  const std::size_t once = code_bytes(rows.count, rows.width);
  const std::size_t all = once + coded_bytes(batch, rows.width);
  if (all / sizeof(float) > kMaxValues)
    return too_large(
        batch, std::to_string(rows.count) + " encoded rows of " + std::to_string(rows.width) + " columns");
  std::uint8_t* const codes = rows.codes->resize(all);
  for (std::size_t i = once; i < all && once != 0; ++i) codes[i] = codes[i - once];
  return rows;
}

Result<RepeatedRows> rows_as_asked(const BenchOptions& options, const Program& program) {
  const std::uint64_t largest = *std::max_element(options.batches.begin(), options.batches.end());
  const ProgramMeta& meta = program.meta();
  if (options.rows.empty()) {
    const std::uint64_t most = kDrawnValues / std::max(meta.num_features, 1U);
    return repeated(draw_rows(program, std::clamp(most, std::uint64_t{1}, kDrawnRows)), largest);
  }
  FVM_ASSIGN(Source source, in_file(options.rows, open_unpacked(options.rows)));
  FVM_ASSIGN(const bool is_coded, in_file(options.rows, source.starts_with(kCodedMagic)));
  if (is_coded) {
    FVM_TRY(expect_no_row_options(options.rows, options.form));
    FVM_ASSIGN(CodedReader reader, in_file(options.rows, CodedReader::open(std::move(source))));
    FVM_ASSIGN(RepeatedRows rows, in_file(options.rows, repeated(std::move(reader), largest)));
    if (rows.count == 0) return in_file(options.rows, refused("", "has no rows"));
    return rows;
  }
  FVM_ASSIGN(Rows rows, read_rows(options.rows, std::move(source), row_form(program, options.form)));
  if (rows.count == 0) return in_file(options.rows, refused("", "has no rows"));
  return repeated(std::move(rows), largest);
}

/// Calls a predictor with batch after batch of the rows, round and round.
class Caller {
 public:
  Caller(const Predictor& predictor, const RepeatedRows& rows, std::uint64_t batch)
      : predictor_(predictor),
        rows_(rows),
        batch_(batch),
        context_(predictor.make_context()),
        out_(batch * output_width(predictor.program().meta(), OutputKind::Raw)) {}

  Result<void> call() {
    const AnyRows rows = rows_.batch(next_, batch_);
    next_ = rows_.after(next_, batch_);
    return predictor_.predict(*context_, rows, OutputKind::Raw, out_.data());
  }

  /// Makes `calls` calls and returns the time that they took together.
  Result<Seconds> time(std::uint64_t calls) {
    const Clock::time_point begin = Clock::now();
    for (std::uint64_t i = 0; i < calls; ++i) FVM_TRY(call());
    return Seconds(Clock::now() - begin);
  }

 private:
  const Predictor& predictor_;
  const RepeatedRows& rows_;
  std::uint64_t batch_;
  std::unique_ptr<Context> context_;
  std::vector<float> out_;
  std::size_t next_ = 0;
};

/// Returns the smallest value that is at least as large as this share of all values.
template <class T>
double quantile(std::vector<T>& values, double share) {
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), at, values.end());
  return static_cast<double>(*at);
}

/// Returns the time between two consecutive readings of the clock, in ns.
double clock_cost() {
  std::vector<std::int64_t> apart(10'001);
  for (std::int64_t& ns : apart) {
    const Clock::time_point begin = Clock::now();
    ns = std::chrono::nanoseconds(Clock::now() - begin).count();
  }
  return quantile(apart, 0.5);
}

/// Sets the times per row and the number of calls.
Result<void> time_samples(Caller& caller, Seconds budget, Measurement& result) {
  Seconds once{0};
  for (Seconds warm{0}; warm < budget / 10 || once == Seconds{0}; warm += once) {
    FVM_ASSIGN(once, caller.time(1));
    once = std::max(once, Seconds(1e-9));
  }
  const auto per_sample = static_cast<std::uint64_t>(std::clamp(kSample / once, 1.0, 1e6));
  std::vector<double> samples;
  for (Seconds spent{0}; spent < budget;) {
    FVM_ASSIGN(const Seconds time, caller.time(per_sample));
    spent += std::max(time, Seconds(1e-9));
    samples.push_back(time.count() * 1e6 / static_cast<double>(per_sample * result.batch));
  }
  result.row_min = *std::min_element(samples.begin(), samples.end());
  result.row_median = quantile(samples, 0.5);
  result.calls += samples.size() * per_sample;
  return {};
}

Result<void> time_single_calls(Caller& caller, Seconds budget, double clock_ns, Measurement& result) {
  std::vector<float> times;
  times.reserve(kMaxSingleCalls);
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(budget);
  for (Clock::time_point now{}; now < end && times.size() < kMaxSingleCalls;) {
    const Clock::time_point begin = Clock::now();
    FVM_TRY(caller.call());
    now = Clock::now();
    const auto ns = static_cast<double>(std::chrono::nanoseconds(now - begin).count());
    times.push_back(static_cast<float>(std::max(ns - clock_ns, 0.0)));
  }
  result.single_calls = CallTimes{quantile(times, 0.5), quantile(times, 0.99), quantile(times, 0.999)};
  result.calls += times.size();
  return {};
}

Result<std::vector<Measurement>> measure(const Program& program, const RepeatedRows& rows,
                                         const BenchOptions& options, double clock_ns) {
  std::vector<Measurement> measurements;
  Progress progress(2, options.batches.size() * options.threads.size(), std::chrono::seconds(1), false,
                    "measurements");
  for (const std::uint64_t threads : options.threads) {
    BackendChoice backend = options.backend;
    backend.host.threads = static_cast<unsigned>(threads);
    FVM_ASSIGN(const std::unique_ptr<Predictor> predictor, make_predictor(backend, program, options.model));
    for (const std::uint64_t batch : options.batches) {
      progress.show(measurements.size());
      Measurement result{batch, threads, predictor->describe(), 0, 0, 0, std::nullopt};
      Caller caller(*predictor, rows, batch);
      const Seconds budget = batch == 1 ? options.seconds / 2 : options.seconds;
      FVM_TRY(in_file(options.model, time_samples(caller, budget, result)));
      if (batch == 1) FVM_TRY(in_file(options.model, time_single_calls(caller, budget, clock_ns, result)));
      measurements.push_back(std::move(result));
    }
  }
  return measurements;
}

std::string rows_text(const BenchOptions& options, const RepeatedRows& rows) {
  const std::string count = std::to_string(rows.count) + (rows.codes == nullptr ? " rows" : " encoded rows");
  return options.rows.empty() ? count + " drawn between the model's thresholds, seed 1"
                              : count + " of " + options.rows;
}

std::string schedule_text(const Program& program) {
  std::string text(program.text(StringId::Schedule));
  while (text.ends_with('\n')) text.pop_back();
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at))
    text.replace(at, 1, "; ");
  return text;
}

std::string text_page(const Program& program, const BenchOptions& options, const RepeatedRows& rows,
                      const std::vector<Measurement>& measurements, double clock_ns) {
  std::string text = "model     " + escaped(options.model) + '\n';
  text += "schedule  " + escaped(schedule_text(program)) + '\n';
  text += "rows      " + escaped(rows_text(options, rows)) + ", repeated to the batch\n";
  text += "runs on   " + measurements.front().runs_on + "\n\n";
  text += "   batch  threads     us/row min  us/row median       calls   ns/call p50        p99      p99.9\n";
  const auto add = [&text](const char* format, auto... values) {
    std::array<char, 160> part{};
    std::snprintf(part.data(), part.size(), format, values...);
    text += part.data();
  };
  for (const Measurement& line : measurements) {
    add("%8llu %8llu %14.4f %14.4f %11llu", static_cast<unsigned long long>(line.batch),
        static_cast<unsigned long long>(line.threads), line.row_min, line.row_median,
        static_cast<unsigned long long>(line.calls));
    if (const auto& single = line.single_calls)
      add(" %13.0f %10.0f %10.0f", single->p50, single->p99, single->p999);
    text += '\n';
  }
  if (std::any_of(measurements.begin(), measurements.end(), [](const auto& x) { return x.single_calls; }))
    add("\nns/call: calls timed one by one, the clock's own %.0f ns subtracted\n", clock_ns);
  return text;
}

std::string json_page(const Program& program, const BenchOptions& options, const RepeatedRows& rows,
                      const std::vector<Measurement>& measurements, double clock_ns) {
  nlohmann::ordered_json page = nlohmann::ordered_json::array();
  for (const Measurement& line : measurements) {
    nlohmann::ordered_json row;
    row["model"] = options.model;
    row["rows"] = rows_text(options, rows);
    row["contract"] = name_of(program.meta().contract);
    row["schedule"] = program.text(StringId::Schedule);
    row["target"] = options.backend.host.target;
    row["runs_on"] = line.runs_on;
    row["batch"] = line.batch;
    row["threads"] = line.threads;
    row["us_per_row_min"] = line.row_min;
    row["us_per_row_median"] = line.row_median;
    row["calls"] = line.calls;
    if (const auto& single = line.single_calls) {
      row["p50_ns"] = single->p50;
      row["p99_ns"] = single->p99;
      row["p999_ns"] = single->p999;
      row["clock_ns"] = clock_ns;
    }
    page.push_back(std::move(row));
  }
  return page.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

Result<void> run(const Arguments& arguments) {
  FVM_ASSIGN(const BenchOptions options, understand(arguments));
  FVM_ASSIGN(const Program program, program_as_asked(arguments, options.model, options.backend.schedule()));
  FVM_ASSIGN(const RepeatedRows rows, rows_as_asked(options, program));
  const double clock_ns = clock_cost();
  FVM_ASSIGN(const std::vector<Measurement> measurements, measure(program, rows, options, clock_ns));
  const auto page = arguments.has("json") ? json_page : text_page;
  return write_output("-", page(program, options, rows, measurements, clock_ns));
}

std::string notes() {
  return target_notes() +
         "\n"
         "Times whole predict calls for raw scores, made by one caller in this process. Rows are float32 in\n"
         "memory, or codes in batches that begin at a block of 64. A sample is the mean over about 1 ms of\n"
         "calls, or one call if that takes longer; the table has the smallest and the median sample, in\n"
         "microseconds per row. With batch 1, half of the time goes to calls that are timed one by one (up\n"
         "to a million): the columns p50, p99 and p99.9 have the percentiles of their times, less the\n"
         "time that reading the clock takes.\n"
         "Other work on the machine disturbs the median first. Compare only what ran at the same time.\n";
}

}  // namespace

const Command kBench = {
    "bench",
    "times predictions with a model or a program",
    {"bench MODEL [ROWS] [--batch LIST] [--threads LIST] [options]"},
    {{"MODEL", "a trainer's model file, or a .fvm program; - is standard input"},
     {"ROWS",
      "as for run, repeated to fill batches; without ROWS up to 16384 rows are drawn from a fixed seed: each "
      "value from an interval between the feature's thresholds, all equally likely, none missing"}},
    {{"batch", '\0', "LIST", "rows per call, e.g. 1,32 (default 1,64,4096; up to 16777216)"},
     {"threads", '\0', "LIST", "numbers of threads, e.g. 1,2 (default 1)"},
     kScheduleOption,
     kBackendOption,
     kDeviceOption,
     kTargetOption,
     {"seconds", '\0', "S", "seconds per line of the table, default 1; up to 3600"},
     {"json", '\0', "", "prints an array with an object for each line instead of the table"},
     kFormatOption,
     kHeaderOption,
     kSeparatorOption,
     kNaOption,
     kExtraColumnsOption,
     kArrayOption,
     kIndexBaseOption,
     kCategoriesOption,
     kRoundsOption,
     kContractOption,
     kStrictOption},
    "  forestvm bench model.json rows.npy --batch 1,64,4096 --threads 1,2\n"
    "  forestvm bench model.fvm --batch 1 --seconds 5 --json\n",
    notes,
    run,
};

}  // namespace forestvm::cli
