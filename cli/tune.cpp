// forestvm tune: searches for the fastest schedules of a model on this machine and writes a program with a plan for
// each number of rows, or lists the space of schedules.
#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/named_schedules.hpp>

#include "cli/backend.hpp"
#include "cli/commands.hpp"
#include "cli/interrupts.hpp"
#include "cli/io/cell_value.hpp"
#include "cli/io/output_file.hpp"
#include "cli/io/quote.hpp"
#include "cli/printed.hpp"
#include "cli/program_file.hpp"
#include "cli/progress.hpp"
#include "cli/schedule_lines.hpp"
#include "cli/tune_report.hpp"
#include "cli/tuning.hpp"
#include "kernels/account/device_model.hpp"

namespace forestvm::cli {
namespace {

constexpr std::size_t kMaxBatches = 8;
constexpr double kMaxBudget = 24 * 3600;
constexpr std::size_t kLongestReport = std::size_t{1} << 28;
constexpr const char* kUsualDevice = "h100";

/// The options of the command line.
struct TuneOptions {
  std::string model, rows, out, resume;
  std::vector<std::string> reports;
  RowForm form;
  TuningOptions tuning;
};

std::vector<std::string_view> space_names() {
  std::vector<std::string_view> names;
  for (const scheduler::ScheduleSpace& space : scheduler::schedule_spaces()) names.push_back(space.name);
  return names;
}

/// Reads a time such as 30, 30s, 2m or 1h.
Result<Seconds> budget_of(const std::string& text) {
  constexpr std::array<std::pair<char, double>, 3> units = {{{'s', 1}, {'m', 60}, {'h', 3600}}};
  std::string number = text;
  double factor = 1;
  for (const auto& [unit, seconds] : units)
    if (number.ends_with(unit)) {
      factor = seconds;
      number.pop_back();
      break;
    }
  const auto value = parse_number<float>(number);
  if (!value || !(*value > 0 && *value * factor <= kMaxBudget))
    return usage_error(formatted("--budget {}: expected a time above 0, at most 24h, such as 30s or 2m",
                                 single_quoted(text)));
  return Seconds(*value * factor);
}

/// Returns the GPU whose times are estimated; null for backends that are measured.
Result<const kernels::DeviceModel*> estimated_device(const Arguments& arguments,
                                                     const BackendChoice& backend) {
  if (backend.kind != BackendKind::Emulator) {
    if (arguments.has("device-model")) return usage_error("--device-model is for --backend emulator");
    return nullptr;
  }
  const std::string name = arguments.get("device-model", kUsualDevice);
  std::string known;
  for (const kernels::DeviceModel& device : kernels::device_models()) {
    if (!kernels::is_estimated(device)) continue;
    if (device.name == name) return &device;
    known += (known.empty() ? "" : ", ") + std::string(device.name);
  }
  return usage_error(formatted("--device-model {}: expected one of {}", name, known));
}

/// Refuses reports of other kinds, and outputs that would overwrite an input or another output.
Result<void> expect_files_apart(const TuneOptions& options) {
  std::vector<std::string> outputs{options.out};
  for (const std::string& report : options.reports) {
    if (!report.ends_with(".html") && !report.ends_with(".json"))
      return usage_error(
          formatted("--report {}: expected a name that ends in .html or .json", single_quoted(report)));
    if (report == options.out) return usage_error("--report and -o name the same file");
    if (std::find(outputs.begin(), outputs.end(), report) != outputs.end())
      return usage_error(formatted("--report {}: given twice", single_quoted(report)));
    outputs.push_back(report);
  }
  for (const std::string& output : outputs)
    for (const std::string& input : {options.model, options.rows})
      if (!input.empty()) FVM_TRY(expect_other_file(output, input));
  if (!options.resume.empty()) FVM_TRY(expect_other_file(options.out, options.resume));
  return {};
}

Result<TuneOptions> read_tune_options(const Arguments& arguments) {
  TuneOptions options;
  FVM_ASSIGN(options.model, required(arguments, "MODEL"));
  options.rows = arguments.get("ROWS");
  FVM_TRY(expect_one_standard_input(options.model, options.rows));
  if (!arguments.has("out"))
    return usage_error("-o OUT.fvm is missing; --list-space prints the schedules instead");
  options.out = arguments.get("out");
  if (arguments.has("report")) options.reports = arguments.all("report", "");
  options.resume = arguments.get("resume");
  FVM_TRY(expect_files_apart(options));
  FVM_ASSIGN(options.form, row_options(arguments));
  TuningOptions& tuning = options.tuning;
  FVM_ASSIGN(tuning.batches, arguments.numbers("batch", 1, kMaxBatch, {1, 64, 4096}));
  std::sort(tuning.batches.begin(), tuning.batches.end());
  tuning.batches.erase(std::unique(tuning.batches.begin(), tuning.batches.end()), tuning.batches.end());
  if (tuning.batches.size() > kMaxBatches)
    return usage_error(formatted("--batch: more than {} numbers of rows", kMaxBatches));
  FVM_ASSIGN(tuning.backend, choose_backend(arguments));
  FVM_ASSIGN(const std::uint64_t threads, arguments.number("threads", 1, kMaxThreads, 1));
  tuning.backend.host.threads = static_cast<unsigned>(threads);
  FVM_ASSIGN(tuning.device, estimated_device(arguments, tuning.backend));
  if (tuning.device != nullptr && !options.rows.empty())
    return usage_error("--backend emulator estimates times and reads no ROWS");
  FVM_ASSIGN(tuning.compile.contract, arguments.choice("contract", tuning.compile.contract));
  tuning.compile.strict = true;  // refuses schedules that change results
  FVM_ASSIGN(const std::size_t strategy, arguments.choice("strategy", kStrategyNames, 0));
  tuning.strategy = static_cast<Strategy>(strategy);
  FVM_ASSIGN(tuning.budget, budget_of(arguments.get("budget", "30s")));
  return options;
}

/// Returns the processor's name; empty if the system does not tell it.
std::string processor_name() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return {};
}

/// Describes where times hold.
Result<std::string> machine_of(const TuneOptions& options, const Program& program) {
  const TuningOptions& tuning = options.tuning;
  if (tuning.device != nullptr) return formatted("{}, on paper", tuning.device->text);
  FVM_ASSIGN(const auto predictor, make_predictor(tuning.backend, program, options.model));
  const std::string processor = tuning.backend.on_host() ? processor_name() : std::string();
  return predictor->describe() + (processor.empty() ? "" : ", " + processor);
}

/// Returns the calls, the machine and the program for which the search's times hold.
TunedCalls calls_of(const TuneOptions& options, const Automatic& automatic, const RepeatedRows& rows) {
  const TuningOptions& tuning = options.tuning;
  return TunedCalls{options.model,
                    tuning.device != nullptr ? "none: times are estimated" : text_of(rows, options.rows),
                    tuning.machine,
                    checksum(automatic.program.image()),
                    tuning.backend.host.threads,
                    tuning.compile.contract,
                    tuning.batches,
                    &tuning.space(),
                    automatic.name};
}

std::string summary(const TuneOptions& options, const TuneReport& report) {
  const Tuning& tuning = report.tuning;
  std::string text = formatted("schedules {} measured, {} refused, of {} planned\n", tuning.tried,
                               tuning.refused, tuning.planned + 1);
  text += formatted("runs on   {}\n\n    rows     us/row  {} us/row    gain  schedule\n",
                    report.calls.machine, printed("%4s", report.calls.automatic.c_str()));
  for (const TunedBatch& batch : tuning.batches) {
    const Finalist& best = batch.finalists.front();
    text +=
        printed("%8llu %10.4f %12.4f %6.2fx  ", static_cast<unsigned long long>(batch.batch), best.us_per_row,
                batch.auto_us_per_row, best.us_per_row > 0 ? batch.auto_us_per_row / best.us_per_row : 1.0);
    text += best.name + (best.name == report.calls.automatic || batch.is_separated ? "" : " (a tie)") + '\n';
  }
  if (tuning.tried == 1 && tuning.refused != 0 && report.calls.contract == Contract::Trainer)
    text += formatted("All others were refused. {}\n", kOtherContracts);
  return formatted("{}\nwrote {}\n", text, escaped(options.out));
}

/// Runs the search and shows its progress. A signal then ends the search and not the program.
Result<Tuning> search(const Model& model, const Automatic& automatic, const TuneOptions& options,
                      const RepeatedRows& rows) {
  const Interrupts interrupts;
  std::fputs(formatted("forestvm: {} schedules; Ctrl-C ends the search and keeps the best so far\n",
                       options.tuning.device == nullptr ? "measuring" : "estimating")
                 .c_str(),
             stderr);
  std::optional<Progress> progress;
  std::size_t planned = 0;  // the total for which the progress bar was made
  const auto show = [&](const TuningProgress& now) {
    if (std::exchange(planned, now.planned) != now.planned)
      progress.emplace(2, now.planned, std::chrono::seconds(0), false, "schedules");
    progress->show(now.done, now.best);
  };
  FVM_ASSIGN(Tuning tuning,
             tune(
                 model, automatic, options.tuning, rows, [] { return Interrupts::came(); }, show));
  progress.reset();
  if (Interrupts::came()) std::fputs("forestvm: stopped by a signal; keeping the best so far\n", stderr);
  return tuning;
}

/// Compiles the schedule that was found, and adds its loop nests to the report.
Result<Program> compile_found(const Model& model, CompileOptions options, TuneReport& report) {
  options.on_stage = [&](Stage stage, const std::function<std::string()>& print) {
    if (stage == Stage::Loops) report.loops = print();
  };
  FVM_ASSIGN(Compiled compiled, compile(model, report.tuning.schedule, options));
  return std::move(compiled.program);
}

Result<void> run_search(TuneOptions options, const Model& model) {
  const std::string name = options.tuning.backend.schedule();
  FVM_ASSIGN(Schedule schedule,
             in_file(options.model, schedule_by_name(model, name, options.tuning.compile.contract)));
  FVM_ASSIGN(Compiled compiled, in_file(options.model, compile(model, schedule, options.tuning.compile)));
  const Automatic automatic{name, std::move(schedule), std::move(compiled.program)};
  FVM_ASSIGN(options.tuning.machine, machine_of(options, automatic.program));
  RepeatedRows rows;  // stays empty if times are estimated
  if (options.tuning.device == nullptr) {
    FVM_ASSIGN(rows,
               repeated_rows(options.rows, options.form, automatic.program, options.tuning.batches.back()));
  }
  TuneReport report;
  report.calls = calls_of(options, automatic, rows);
  report.strategy = options.tuning.strategy;
  report.budget = options.tuning.budget;
  if (!options.resume.empty()) {
    FVM_ASSIGN(const std::string text, read_text(options.resume, kLongestReport, "a report"));
    FVM_ASSIGN(options.tuning.earlier, in_file(options.resume, earlier_trials(text, report.calls)));
  }
  FVM_ASSIGN(report.tuning, in_file(options.model, search(model, automatic, options, rows)));
  FVM_ASSIGN(const Program program,
             in_file(options.model, compile_found(model, options.tuning.compile, report)));
  const auto image = program.image();
  FVM_TRY(write_output(options.out, {reinterpret_cast<const char*>(image.data()), image.size()}));
  for (const std::string& path : options.reports)
    FVM_TRY(write_output(path, path.ends_with(".html") ? tune_page(report) : tune_json(report)));
  std::fputs(summary(options, report).c_str(), stderr);
  return {};
}

/// Returns a Usage error if an argument is given that --list-space does not use.
Result<void> expect_nothing_to_measure(const Arguments& arguments) {
  if (arguments.has("ROWS")) return usage_error("--list-space takes no ROWS");
  for (const Option& option : kTune.options) {
    const std::string name = option.name;
    if (arguments.has(name) && name != "list-space" && name != "contract" && name != "rounds")
      return usage_error("--list-space takes no --" + name);
  }
  return {};
}

Result<void> run_tune(const Arguments& arguments) {
  FVM_ASSIGN(const std::string path, required(arguments, "MODEL"));
  FVM_ASSIGN(const std::size_t space, arguments.choice("list-space", space_names(), 0));
  FVM_ASSIGN(const Contract contract, arguments.choice("contract", Contract::Trainer));
  const bool lists = arguments.has("list-space");
  TuneOptions options;
  if (lists) {
    FVM_TRY(expect_nothing_to_measure(arguments));
  } else {
    FVM_ASSIGN(options, read_tune_options(arguments));
  }
  FVM_ASSIGN(const ModelOrProgram loaded, load_requested(arguments, path));
  const auto* const model = std::get_if<Model>(&loaded);
  if (model == nullptr)
    return usage_error(single_quoted(path) + " is a program, which has its schedule already: tune the model");
  if (!lists) return run_search(std::move(options), *model);
  return in_file(path, list_space(scheduler::schedule_spaces()[space], *model, contract));
}

std::vector<std::string_view> estimated_device_names() {
  std::vector<std::string_view> names;
  for (const kernels::DeviceModel& device : kernels::device_models())
    if (kernels::is_estimated(device)) names.push_back(device.name);
  return names;
}

std::string tune_notes() {
  return target_notes() +
         "\n"
         "Measures calls for raw scores in this process. Schedules are compiled, sampled beside auto in turns,\n"
         "and the best of each number of rows race: all are sampled in turns, the slower half leaves, until the\n"
         "first is ahead of the second beyond chance or the budget ends. auto stays where nothing is 2% faster.\n"
         "The program has a plan for each number of rows, which reaches to the geometric mean of it and the\n"
         "next; forestvm inspect shows the plans, with times and machine. Predictions have the same bits.\n"
         "predict measures the three schedules of each number of rows and CPU target that auto's predictor expects to be\n"
         "fastest. heuristic measures a few dozen schedules. exhaustive then goes on with the whole space\n"
         "(--list-space host), which takes minutes to hours: give it a --budget. Ctrl-C or SIGTERM ends the search and\n"
         "writes the best schedules found so far; a second one ends the program. --resume goes on from the JSON report of\n"
         "an earlier search on this machine: of the schedules measured then, only the best are measured again.\n"
         "\n"
         "With --backend cuda or hip, schedules for GPUs are measured on the GPU: heuristic is algorithm 1 of SilvanForge,\n"
         "and exhaustive goes on with its space of 5,184 points (--list-space gpu); others are compared with the schedule\n"
         "gpu. With --backend emulator nothing runs: times are those that the accounting of forestvm inspect estimates\n"
         "for a GPU. These schedules add a row's trees in another order than trainers do: use --contract reproducible\n"
         "or fast.\n";
}

}  // namespace

const Command kTune = {
    "tune",
    "searches for the fastest schedules of a model on this machine",
    {"tune MODEL [ROWS] -o OUT.fvm [--batch LIST] [--threads N] [--strategy S] [--budget T] [options]",
     "tune MODEL [ROWS] -o OUT.fvm --backend B [--device N] [--device-model D] [options]",
     "tune MODEL --list-space host|gpu [--contract C]"},
    {{"MODEL", "a trainer's model file; - is standard input"},
     {"ROWS",
      "as for bench: rows of the kind that will be predicted; without ROWS they are drawn between the model's "
      "thresholds"}},
    {{"out", 'o', "OUT", "the program file to write", kFiles},
     {"batch", '\0', "LIST", "rows per call, e.g. 1,64 (default 1,64,4096; up to 8 numbers)"},
     {"threads", '\0', "N", "number of threads, default 1"},
     {"strategy", '\0', "S", "heuristic (default), exhaustive or predict", {listed<kStrategyNames>}},
     {"budget", '\0', "T", "the longest time of the search, e.g. 30s (default), 2m or 1h"},
     {"report", '\0', "FILE",
      "writes what was measured: a page for people (FILE.html) or all numbers (FILE.json); may be given for both",
      kFiles, true},
     {"resume", '\0', "FILE.json", "goes on from the report of an earlier search", kFiles},
     {"list-space",
      '\0',
      "SPACE",
      "prints the points of a space of schedules, host or gpu, with their schedules, or why they are refused",
      {space_names}},
     kBackendOption,
     kDeviceOption,
     {"device-model",
      '\0',
      "D",
      "the GPU whose times are estimated, with --backend emulator; default h100",
      {estimated_device_names}},
     kTargetOption,
     FVM_ROW_OPTIONS,
     kRoundsOption,
     kContractOption},
    "  forestvm tune model.json rows.npy -o model.fvm --batch 1,64 --budget 10s\n"
    "  forestvm tune model.json -o model.fvm --backend emulator --contract fast --batch 1,4096\n"
    "  forestvm tune model.json --list-space gpu --contract fast\n",
    tune_notes,
    run_tune,
};

}  // namespace forestvm::cli
