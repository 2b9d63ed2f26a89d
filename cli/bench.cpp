// forestvm bench: measures how long predictions take in this process. Rows are float32 or codes in memory; one caller
// makes whole predict calls for raw scores. A sample is about a millisecond of calls. With batches of one row, calls
// are also timed one by one.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/program.hpp>
#include <forestvm/schedule.hpp>

#include "cli/backend.hpp"
#include "cli/call_parts.hpp"
#include "cli/call_samples.hpp"
#include "cli/commands.hpp"
#include "cli/io/cell_value.hpp"
#include "cli/io/output_file.hpp"
#include "cli/io/quote.hpp"
#include "cli/printed.hpp"
#include "cli/program_file.hpp"
#include "cli/progress.hpp"
#include "cli/repeated_rows.hpp"
#include "cli/row_options.hpp"
#include "cli/schedule_lines.hpp"
#include "scheduler/choose/cost_parts.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm::cli {
namespace {

constexpr float kMaxSeconds = 3600;
constexpr std::size_t kMaxSingleCalls = 1'000'000;

/// The options of the command line.
struct BenchOptions {
  std::string model, rows;
  RowForm form;
  BackendChoice backend;
  std::vector<std::uint64_t> batches, threads;
  Seconds seconds{1};  ///< Time of a measurement.
};

/// Times of calls with one row, in ns, less the time that reading the clock takes.
struct CallTimes {
  double p50, p99, p999;
};

/// One line of the table.
struct Measurement {
  std::uint64_t batch, threads;
  std::size_t schedule;  ///< Number of the program.
  std::string runs_on;
  double row_min, row_median;  ///< Time of a row in microseconds: the least and the median of the samples.
  std::uint64_t calls;
  std::optional<CallTimes> single_calls;
};

Result<BenchOptions> read_bench_options(const Arguments& arguments) {
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
      return usage_error(formatted("--seconds {}: expected a number above 0, at most 3600",
                                   single_quoted(arguments.get("seconds"))));
    options.seconds = Seconds(*seconds);
  }
  if (arguments.has("parts") && !options.backend.on_host())
    return usage_error("--parts: times the parts of calls on the host only");
  return options;
}

/// Returns the median time between two consecutive readings of the clock, in ns.
double clock_cost() {
  std::vector<std::int64_t> apart(10'001);
  for (std::int64_t& ns : apart) {
    const Clock::time_point begin = Clock::now();
    ns = std::chrono::nanoseconds(Clock::now() - begin).count();
  }
  return quantile(apart, 0.5);
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

/// The inputs of a bench: a program for each schedule, the model they were compiled from, if the file is one, and the
/// rows that all predict.
struct Bench {
  const BenchOptions& options;
  std::vector<Program> programs;
  std::optional<Model> model;
  RepeatedRows rows;
  double clock_ns;
};

/// Takes a line of the table as soon as it is measured.
using TakeLine = std::function<Result<void>(const Measurement&)>;

/// Measures calls of `batch` rows, with all programs in turns.
Result<std::vector<Measurement>> measure_batch(const Bench& bench,
                                               const std::vector<std::unique_ptr<Predictor>>& predictors,
                                               std::uint64_t batch, std::uint64_t threads) {
  std::vector<Measurement> results;
  std::vector<Caller> callers;
  callers.reserve(predictors.size());
  for (std::size_t i = 0; i < predictors.size(); ++i) {
    results.push_back({batch, threads, i, predictors[i]->describe(), 0, 0, 0, std::nullopt});
    callers.emplace_back(*predictors[i], bench.rows, batch);
  }
  const Seconds budget = batch == 1 ? bench.options.seconds / 2 : bench.options.seconds;
  FVM_ASSIGN(std::vector<CallSamples> samples, samples_in_turns(callers, budget));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    results[i].row_min = samples[i].least() * 1e6 / static_cast<double>(batch);
    results[i].row_median = samples[i].median() * 1e6 / static_cast<double>(batch);
    results[i].calls = samples[i].calls();
  }
  if (batch == 1)
    for (std::size_t i = 0; i < callers.size(); ++i)
      FVM_TRY(time_single_calls(callers[i], budget, bench.clock_ns, results[i]));
  return results;
}

Result<void> measure(const Bench& bench, bool shows_progress, const TakeLine& take) {
  const BenchOptions& options = bench.options;
  std::size_t done = 0;
  const std::size_t total = options.batches.size() * options.threads.size();
  Progress progress(2, shows_progress ? total : 0, std::chrono::seconds(1), false, "measurements");
  for (const std::uint64_t threads : options.threads) {
    BackendChoice backend = options.backend;
    backend.host.threads = static_cast<unsigned>(threads);
    std::vector<std::unique_ptr<Predictor>> predictors;
    for (const Program& program : bench.programs) {
      FVM_ASSIGN(std::unique_ptr<Predictor> predictor, make_predictor(backend, program, options.model));
      predictors.push_back(std::move(predictor));
    }
    for (const std::uint64_t batch : options.batches) {
      progress.show(done++);
      FVM_ASSIGN(const std::vector<Measurement> lines,
                 in_file(options.model, measure_batch(bench, predictors, batch, threads)));
      for (const Measurement& line : lines) FVM_TRY(take(line));
    }
  }
  return {};
}

/// Describes the inputs, above a table.
std::string inputs_text(const Bench& bench, const std::string& runs_on) {
  const bool several = bench.programs.size() > 1;
  std::string text = formatted("model     {}\n", escaped(bench.options.model));
  for (std::size_t i = 0; i < bench.programs.size(); ++i) {
    const std::string_view schedule = bench.programs[i].text(StringId::Schedule);
    text +=
        formatted("schedule  {}{}\n", several ? formatted("{}: ", i + 1) : "", escaped(one_line(schedule)));
    for (const PlanRemark& plan : plan_remarks(schedule))
      if (!plan.remark.empty()) text += formatted("plan      for {}: {}\n", plan.rows, escaped(plan.remark));
  }
  text +=
      formatted("rows      {}, repeated to the batch\n", escaped(text_of(bench.rows, bench.options.rows)));
  return text + formatted("runs on   {}\n\n", runs_on);
}

/// Returns what stands above the table of calls.
std::string heading(const Bench& bench, const std::string& runs_on) {
  return formatted(
      "{}{}   batch  threads     us/row min  us/row median       calls   ns/call p50        p99      p99.9\n",
      inputs_text(bench, runs_on), bench.programs.size() > 1 ? "schedule " : "");
}

std::string table_line(const Measurement& line, bool several) {
  std::string text = several ? printed("%8zu ", line.schedule + 1) : "";
  text += printed("%8llu %8llu %14.4f %14.4f %11llu", static_cast<unsigned long long>(line.batch),
                  static_cast<unsigned long long>(line.threads), line.row_min, line.row_median,
                  static_cast<unsigned long long>(line.calls));
  if (const auto& single = line.single_calls)
    text += printed(" %13.0f %10.0f %10.0f", single->p50, single->p99, single->p999);
  return text + '\n';
}

/// Prints a table, each line when it is measured.
Result<void> print_table(const Bench& bench) {
  FVM_ASSIGN(OutputFile out, OutputFile::open("-"));
  bool is_first = true;
  const auto take = [&](const Measurement& line) -> Result<void> {
    if (std::exchange(is_first, false)) FVM_TRY(out.write(heading(bench, line.runs_on)));
    FVM_TRY(out.write(table_line(line, bench.programs.size() > 1)));
    return out.flush();
  };
  FVM_TRY(measure(bench, ::isatty(STDOUT_FILENO) == 0, take));
  const std::vector<std::uint64_t>& batches = bench.options.batches;
  if (std::find(batches.begin(), batches.end(), 1) != batches.end())
    FVM_TRY(out.write(
        printed("\nns/call: calls timed one by one, the clock's own %.0f ns subtracted\n", bench.clock_ns)));
  return out.finish();
}

/// Returns what the lines of all tables have.
nlohmann::ordered_json line_json(const Bench& bench, std::size_t schedule, const std::string& runs_on,
                                 std::uint64_t batch, std::uint64_t threads) {
  const Program& program = bench.programs[schedule];
  nlohmann::ordered_json row;
  row["model"] = bench.options.model;
  row["rows"] = text_of(bench.rows, bench.options.rows);
  row["contract"] = name_of(program.meta().contract);
  row["schedule"] = program.text(StringId::Schedule);
  row["target"] = bench.options.backend.host.target;
  row["runs_on"] = runs_on;
  row["batch"] = batch;
  row["threads"] = threads;
  return row;
}

Result<void> print_json(const Bench& bench) {
  nlohmann::ordered_json page = nlohmann::ordered_json::array();
  const auto take = [&](const Measurement& line) -> Result<void> {
    nlohmann::ordered_json row = line_json(bench, line.schedule, line.runs_on, line.batch, line.threads);
    row["us_per_row_min"] = line.row_min;
    row["us_per_row_median"] = line.row_median;
    row["calls"] = line.calls;
    if (const auto& single = line.single_calls) {
      row["p50_ns"] = single->p50;
      row["p99_ns"] = single->p99;
      row["p999_ns"] = single->p999;
      row["clock_ns"] = bench.clock_ns;
    }
    page.push_back(std::move(row));
    return {};
  };
  FVM_TRY(measure(bench, true, take));
  return write_output("-", page.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
}

/// The times of the parts of calls.
struct PartsMeasurement {
  std::uint64_t batch, threads;
  std::size_t schedule;  ///< Number of the program.
  std::string runs_on;
  PartTimes measured;
  std::optional<PartTimes> predicted;
};
using TakeParts = std::function<Result<void>(const PartsMeasurement&)>;

/// Returns what the parts are predicted to take, in one thread and with sums of the model's type.
std::optional<PartTimes> predicted_times(const Bench& bench, const Program& program, std::uint64_t batch,
                                         std::uint64_t threads) {
  const bool counts_exactly = program.meta().contract == Contract::Reproducible;
  if (!bench.model || threads != 1 || counts_exactly) return std::nullopt;
  const auto schedule = parse_schedule(program.text(StringId::Schedule));
  if (!schedule) return std::nullopt;
  const auto target = host::find_target(bench.options.backend.host.target);
  if (!target) return std::nullopt;
  const auto costs = scheduler::predicted_parts(*bench.model, *schedule, static_cast<std::uint32_t>(batch),
                                                (*target)->cpu());
  if (!costs) return std::nullopt;
  return PartTimes{costs->encode, costs->walk, costs->reduce, costs->transform};
}

Result<void> measure_parts(const Bench& bench, bool shows_progress, const TakeParts& take) {
  const BenchOptions& options = bench.options;
  std::size_t done = 0;
  const std::size_t total = options.batches.size() * options.threads.size() * bench.programs.size();
  Progress progress(2, shows_progress ? total : 0, std::chrono::seconds(1), false, "measurements");
  for (const std::uint64_t threads : options.threads) {
    BackendOptions host = options.backend.host;
    host.threads = static_cast<unsigned>(threads);
    std::vector<PartPrograms> parts;
    for (const Program& program : bench.programs) {
      FVM_ASSIGN(PartPrograms made, in_file(options.model, PartPrograms::make(program, host)));
      parts.push_back(std::move(made));
    }
    for (const std::uint64_t batch : options.batches)
      for (std::size_t i = 0; i < parts.size(); ++i) {
        progress.show(done++);
        FVM_ASSIGN(const PartTimes measured,
                   in_file(options.model, parts[i].times(bench.rows, batch, options.seconds)));
        FVM_TRY(take({batch, threads, i, parts[i].whole().describe(), measured,
                      predicted_times(bench, bench.programs[i], batch, threads)}));
      }
  }
  return {};
}

std::string parts_line(const PartTimes& times, const char* kind) {
  std::string text = formatted("  {}", kind);
  for (const double time : times) text += printed(" %10.4f", time);
  return text + printed(" %10.4f\n", std::accumulate(times.begin(), times.end(), 0.0));
}

/// Prints a table of the parts of calls, each line when it is measured.
Result<void> print_parts_table(const Bench& bench) {
  FVM_ASSIGN(OutputFile out, OutputFile::open("-"));
  const bool several = bench.programs.size() > 1;
  bool is_first = true;
  const auto take = [&](const PartsMeasurement& line) -> Result<void> {
    if (std::exchange(is_first, false)) {
      std::string head = several ? "schedule    batch  threads  us/row   " : "   batch  threads  us/row   ";
      for (const std::string_view part : kCallParts) head += printed(" %10s", std::string(part).c_str());
      FVM_TRY(out.write(inputs_text(bench, line.runs_on) + head + "        all\n"));
    }
    const std::string left = (several ? printed("%8zu ", line.schedule + 1) : "") +
                             printed("%8llu %8llu", static_cast<unsigned long long>(line.batch),
                                     static_cast<unsigned long long>(line.threads));
    FVM_TRY(out.write(left + parts_line(line.measured, "measured ")));
    if (line.predicted)
      FVM_TRY(out.write(std::string(left.size(), ' ') + parts_line(*line.predicted, "predicted")));
    return out.flush();
  };
  FVM_TRY(measure_parts(bench, ::isatty(STDOUT_FILENO) == 0, take));
  return out.finish();
}

nlohmann::ordered_json parts_json(const PartTimes& times) {
  nlohmann::ordered_json parts;
  for (std::size_t i = 0; i < times.size(); ++i) parts[kCallParts[i]] = times[i];
  return parts;
}

Result<void> print_parts_json(const Bench& bench) {
  nlohmann::ordered_json page = nlohmann::ordered_json::array();
  const auto take = [&](const PartsMeasurement& line) -> Result<void> {
    nlohmann::ordered_json row = line_json(bench, line.schedule, line.runs_on, line.batch, line.threads);
    row["us_per_row"] = parts_json(line.measured);
    if (line.predicted) row["predicted_us_per_row"] = parts_json(*line.predicted);
    page.push_back(std::move(row));
    return {};
  };
  FVM_TRY(measure_parts(bench, true, take));
  return write_output("-", page.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
}

Result<void> run_bench(const Arguments& arguments) {
  FVM_ASSIGN(const BenchOptions options, read_bench_options(arguments));
  FVM_ASSIGN(RequestedPrograms asked,
             requested_programs(arguments, options.model, options.backend.schedule()));
  const std::uint64_t largest = *std::max_element(options.batches.begin(), options.batches.end());
  FVM_ASSIGN(RepeatedRows rows, repeated_rows(options.rows, options.form, asked.programs.front(), largest));
  const Bench bench{options, std::move(asked.programs), std::move(asked.model), std::move(rows),
                    clock_cost()};
  const bool json = arguments.has("json");
  if (arguments.has("parts")) return json ? print_parts_json(bench) : print_parts_table(bench);
  return json ? print_json(bench) : print_table(bench);
}

std::string bench_notes() {
  return target_notes() +
         "\n"
         "Times whole predict calls for raw scores, made by one caller in this process. Rows are float32 in\n"
         "memory, or codes in batches that begin at a block of 64. A sample is the mean over about 1 ms of\n"
         "calls, or one call if that takes longer; the table has the smallest and the median sample, in\n"
         "microseconds per row. With batch 1, half of the time goes to calls that are timed one by one (up\n"
         "to a million): the columns p50, p99 and p99.9 have the percentiles of their times, less the\n"
         "time that reading the clock takes. Several schedules are sampled in turns, so that what disturbs\n"
         "the machine disturbs all of them.\n"
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
     kSchedulesOption,
     kBackendOption,
     kDeviceOption,
     kTargetOption,
     {"seconds", '\0', "S", "seconds per line of the table, default 1; up to 3600"},
     {"json", '\0', "", "prints an array with an object for each line instead of the table"},
     {"parts", '\0', "",
      "prints what the parts of calls take on the host, encoding, walking, reducing and transforming, and for a model "
      "what they are predicted to take in one thread"},
     FVM_ROW_OPTIONS,
     kRoundsOption,
     kContractOption,
     kStrictOption},
    "  forestvm bench model.json rows.npy --batch 1,64,4096 --threads 1,2\n"
    "  forestvm bench model.fvm --batch 1 --seconds 5 --json\n",
    bench_notes,
    run_bench,
};

}  // namespace forestvm::cli
