// See program_file.hpp.
#include "cli/program_file.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <system_error>

#include <forestvm/compile.hpp>
#include <forestvm/internal/calls.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/rounds.hpp>

#include "cli/background.hpp"
#include "cli/io/quote.hpp"
#include "cli/io/source.hpp"
#include "cli/samples.hpp"

namespace forestvm::cli {
namespace {

constexpr std::size_t kMaxScheduleBytes = std::size_t{1} << 20;

template <class T>
Result<ModelOrProgram> either(Result<T> loaded) {
  if (!loaded) return loaded.error();
  return ModelOrProgram(std::move(*loaded));
}

/// Returns what an error of compile() is about: the schedule if the error's text begins with a place in a schedule,
/// otherwise the model's file.
const std::string& culprit(const std::string& text, const ChosenSchedule& schedule, const std::string& path) {
  return text.starts_with("line ") || text.starts_with("directive ") ? schedule.called : path;
}

std::vector<std::string_view> schedule_names() {
  std::vector<std::string_view> names{"auto"};
  for (const NamedSchedule& schedule : named_schedules()) names.push_back(schedule.name);
  return names;
}

Result<void> check_early_stop(const Program& program) {
  CallOptions call;
  call.early_stop = EarlyStop{};
  return check_call(program, OutputKind::Raw, call);
}

Result<void> check_rounds(const Program& program) {
  CallOptions call;
  if (program.round_begins().size() > 1) call.rounds = Rounds{0, 1};
  return check_call(program, OutputKind::Raw, call);
}

/// Checks that a program has an output, with as few virtual ensembles and stages as there can be.
template <OutputKind output>
Result<void> check_output(const Program& program) {
  CallOptions call;
  call.ensembles = 1;
  call.every = UINT32_MAX;
  return check_call(program, output, call);
}

/// A capability that --with can add to a program, and the option of the compiler that adds it. The option is null for
/// quantiles, which need --samples. `check`, unless it is null, refuses programs of models that have no such output,
/// which the compiler does not.
struct Capability {
  std::string_view name;
  bool CompileOptions::*option;
  Result<void> (*check)(const Program&) = nullptr;
};
constexpr Capability kCapabilities[] = {
    {"early-stop", &CompileOptions::keeps_leaves, check_early_stop},
    {"trees", &CompileOptions::keeps_leaves},
    {"staged", &CompileOptions::keeps_leaves, check_output<OutputKind::Staged>},
    {"rounds", &CompileOptions::keeps_leaves, check_rounds},
    {"virt-ensembles", &CompileOptions::keeps_leaves, check_output<OutputKind::VirtEnsembles>},
    {"uncertainty", &CompileOptions::keeps_leaves, check_output<OutputKind::Uncertainty>},
    {"contributions", &CompileOptions::contributions},
    {"interactions", &CompileOptions::interactions},
    {"approx-contributions", &CompileOptions::approx_contributions},
    {"quantile", nullptr}};

std::vector<std::string_view> capability_names() {
  std::vector<std::string_view> names;
  for (const Capability& capability : kCapabilities) names.push_back(capability.name);
  return names;
}

/// The schedule and the options that --schedule, --contract and --strict ask for.
struct Requested {
  ChosenSchedule chosen;
  CompileOptions options;
  bool quantiles = false;                ///< True if the program is to have quantiles.
  std::vector<const Capability*> added;  ///< The capabilities that --with lists.
};

/// Returns whether --output or --with asks for a capability.
bool asks_for(const Arguments& arguments, std::string_view capability) {
  const std::string listed = "," + arguments.get("output") + "," + arguments.get("with") + ",";
  return listed.find("," + std::string(capability) + ",") != std::string::npos;
}

/// Sets the options for the capabilities that --with lists, separated by commas, and for those that the options of
/// `run` need.
Result<void> add_capabilities(const Arguments& arguments, Requested& requested) {
  CompileOptions& options = requested.options;
  options.keeps_leaves = arguments.has("early-stop");
  const auto add = [&](std::string_view capability) -> const Capability* {
    for (const Capability& known : kCapabilities)
      if (capability == known.name) {
        (known.option == nullptr ? requested.quantiles : options.*known.option) = true;
        return &known;
      }
    return nullptr;
  };
  add(arguments.get("output"));  // other outputs need no capability
  if (!arguments.has("with")) return {};
  const std::string listed = arguments.get("with");
  for (std::size_t begin = 0; begin <= listed.size();) {
    const std::size_t end = std::min(listed.find(',', begin), listed.size());
    requested.added.push_back(add(std::string_view(listed).substr(begin, end - begin)));
    if (requested.added.back() == nullptr) {
      std::string expected;
      for (const std::string_view word : capability_names())
        expected += (expected.empty() ? "" : ", ") + std::string(word);
      return usage_error(formatted("--with {}: expected one of {}", single_quoted(listed), expected));
    }
    begin = end + 1;
  }
  return {};
}

Result<Requested> requested_of(const Arguments& arguments, const Model& model, const std::string& schedule) {
  Requested requested;
  FVM_ASSIGN(requested.options.contract, arguments.choice("contract", requested.options.contract));
  for (const char* option : {"for-rows", "for-threads"})
    if (arguments.has(option) && schedule != "auto")
      return usage_error(formatted("--{}: is for the schedule auto", option));
  if (arguments.has("for-rows") || arguments.has("for-threads")) {
    FVM_ASSIGN(const auto rows, arguments.numbers("for-rows", 1, kMaxBatch, {}));
    FVM_ASSIGN(const std::uint64_t threads, arguments.number("for-threads", 1, kMaxThreads, 1));
    const std::set<std::uint32_t> ascending(rows.begin(), rows.end());
    requested.chosen = {
        automatic_schedule(model, std::vector<std::uint32_t>(ascending.begin(), ascending.end()),
                           static_cast<unsigned>(threads)),
        "schedule auto"};
  } else {
    FVM_ASSIGN(requested.chosen, choose_schedule(schedule, model, requested.options.contract));
  }
  requested.options.strict = arguments.has("strict");
  FVM_TRY(add_capabilities(arguments, requested));
  if (requested.quantiles && !arguments.has("samples"))
    return usage_error("quantiles come from the targets of training rows: give --samples X.npy,y.npy");
  if (!requested.quantiles && arguments.has("samples"))
    return usage_error("--samples: is for --with quantile, and for --output quantile of run");
  if (requested.quantiles) {
    FVM_ASSIGN(requested.options.samples, read_samples(arguments.get("samples"), model));
  }
  if (!arguments.has("background")) return requested;
  if (!requested.options.contributions || requested.options.interactions)
    return usage_error("--background: is for contributions, without interactions");
  FVM_ASSIGN(requested.options.background, read_background(arguments.get("background"), model));
  return requested;
}

/// Prints a compilation's warnings and timings on standard error.
Result<Program> reported(const Arguments& arguments, const std::string& path, const Requested& requested,
                         Result<Compiled> compiled) {
  if (!compiled) return blame(compiled.error(), requested.chosen, path);
  for (const std::string& warning : compiled->warnings)
    std::fprintf(stderr, "forestvm: %s: warning: %s\n",
                 escaped(culprit(warning, requested.chosen, path)).c_str(), escaped(warning).c_str());
  if (arguments.has("timings"))
    for (const PassTime& time : compiled->passes)
      std::fprintf(stderr, "%-20.*s %9.3f ms\n", static_cast<int>(time.pass.size()), time.pass.data(),
                   time.seconds * 1e3);
  for (const Capability* const added : requested.added)
    if (added->check != nullptr) FVM_TRY(in_file(path, added->check(compiled->program)));
  return std::move(compiled->program);
}

}  // namespace

Error in_file(const std::string& file, Error error) {
  const std::string name = file == "-" ? "standard input" : file;
  error.where = error.where.empty() ? name : formatted("{}: {}", name, error.where);
  return error;
}

Result<ModelOrProgram> load_file(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) return in_file(path, either(load_model(path)));
  FVM_ASSIGN(Source source, in_file(path, Source::open(path)));
  FVM_ASSIGN(const std::string_view start, in_file(path, source.peek(kModelOpening)));
  const bool program = is_program(bytes_of(start));
  if (path != "-" && source.bytes_left()) {  // the loaders map or read regular files themselves
    return in_file(path, program ? either(Program::load(path)) : either(load_model(path)));
  }
  if (!program) FVM_TRY(in_file(path, check_model_opening(bytes_of(start))));
  FVM_ASSIGN(const std::string text, in_file(path, source.read_rest(LoadLimits{}.max_bytes)));
  return in_file(path,
                 program ? either(Program::from_bytes(bytes_of(text))) : either(load_model(bytes_of(text))));
}

namespace {

/// Returns the number in a part of --rounds; `otherwise` for an empty one.
std::optional<std::uint32_t> round_number(std::string_view text, std::uint32_t otherwise) {
  if (text.empty()) return otherwise;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Returns the rounds that a text "A:B" asks for in a model or program of `count` rounds.
Result<Rounds> requested_rounds(std::uint32_t count, const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto begin = round_number(text.substr(0, colon), 0);
  const auto end = colon == std::string::npos ? std::nullopt : round_number(text.substr(colon + 1), count);
  if (begin && end) return Rounds{*begin, *end};
  return usage_error(
      formatted("--rounds {}: expected A:B, two numbers of rounds, or best", single_quoted(text)));
}

Result<Rounds> requested_rounds(const Model& model, const std::string& path, const std::string& text) {
  if (text == "best") return in_file(path, best_rounds(model));
  return requested_rounds(round_count(model), text);
}

/// Says on standard error which rounds of a model that stopped early are used.
void report_rounds(const Model& model, const std::string& path) {
  const std::uint32_t count = round_count(model);
  if (!model.best_round || *model.best_round + 1 >= count) return;
  std::fprintf(
      stderr,
      "forestvm: %s: training stopped early: round %u was the best, and all %u are used, as Booster.predict "
      "does; --rounds best uses rounds 0:%u, as the scikit-learn interface does\n",
      escaped(path).c_str(), *model.best_round, count, *model.best_round + 1);
}

/// Removes the trees of rounds that --rounds does not ask for. Without that option, says on standard error which rounds
/// of a model that stopped early are used.
Result<void> choose_rounds(const Arguments& arguments, const std::string& path, Model& model) {
  if (!arguments.has("rounds")) {
    report_rounds(model, path);
    return {};
  }
  FVM_ASSIGN(const Rounds rounds, requested_rounds(model, path, arguments.get("rounds")));
  const bool has_members = !model.averaged && model.uncertainty != UncertaintyRule::None;
  for (const char* const output : {"virt-ensembles", "uncertainty"})
    if (rounds.begin != 0 && has_members && asks_for(arguments, output))
      return usage_error(
          formatted("--rounds: the rounds {}:{} do not begin with the first, as those of {} must",
                    rounds.begin, rounds.end, output));
  return in_file(path, keep_rounds(model, rounds));
}

}  // namespace

Result<ModelOrProgram> load_requested(const Arguments& arguments, const std::string& path) {
  FVM_ASSIGN(ModelOrProgram loaded, load_file(path));
  if (auto* const model = std::get_if<Model>(&loaded)) {
    FVM_TRY(choose_rounds(arguments, path, *model));
  } else if (arguments.has("rounds")) {
    return usage_error(
        formatted("--rounds: {} is a program, and only run chooses among a program's rounds: give the model",
                  single_quoted(path)));
  }
  return loaded;
}

Result<Program> load_program(const std::string& path) {
  FVM_ASSIGN(Source source, in_file(path, Source::open(path)));
  if (path != "-" && source.bytes_left()) return in_file(path, Program::load(path));
  FVM_ASSIGN(const std::string_view start, in_file(path, source.peek(kModelOpening)));
  if (!is_program(bytes_of(start))) return in_file(path, Program::from_bytes(bytes_of(start)));
  FVM_ASSIGN(const std::string text, in_file(path, source.read_rest(LoadLimits{}.max_bytes)));
  return in_file(path, Program::from_bytes(bytes_of(text)));
}

constinit const Option kRoundsOption = {
    "rounds", '\0', "A:B",
    "uses only the boosting rounds from A on and before B, counted from 0 (:B and A: are allowed), or with the word best "
    "those up to the best one of early stopping; default: all, as the trainer's booster does. For a program only run "
    "takes this option, and only if the program was compiled --with rounds"};
#define FVM_SCHEDULE_VALUES                                                                                                \
  "auto (default), the name of a schedule, the text of one (a value with a parenthesis), or a file (a value with a slash " \
  "or a dot); see forestvm help schedules"
constinit const Option kScheduleOption = {"schedule", '\0', "S", FVM_SCHEDULE_VALUES, {schedule_names, true}};
constinit const Option kSchedulesOption = {
    "schedule", '\0', "S", FVM_SCHEDULE_VALUES "; several are compared side by side", {schedule_names, true},
    true};
#undef FVM_SCHEDULE_VALUES
constinit const Option kContractOption = {
    "contract",
    '\0',
    "C",
    "the bits that predictions promise: trainer (default: the trainer's own), reproducible (independent "
    "of schedule, threads and target) or fast",
    {names_of<Contract>}};
constinit const Option kWithOption = {
    "with",
    '\0',
    "WHAT",
    "what run will be asked for with the program: early-stop (run --early-stop), rounds (run --rounds), or one of trees, "
    "staged, virt-ensembles, uncertainty, contributions, interactions, approx-contributions and quantile (run --output; "
    "quantile needs --samples); several: with commas between them",
    {capability_names}};
constinit const Option kStrictOption = {"strict", '\0', "", "turns warnings about the contract into errors"};

Result<ChosenSchedule> choose_schedule(const std::string& value, const Model& model, Contract contract) {
  if (value.find('(') != std::string::npos) {
    FVM_ASSIGN(Schedule schedule, in_file("--schedule", parse_schedule(value)));
    return ChosenSchedule{std::move(schedule), "--schedule"};
  }
  if (value.find_first_of("/.") == std::string::npos) {
    auto schedule = schedule_by_name(model, value, contract);
    if (!schedule) return in_file("--schedule", schedule.error());
    return ChosenSchedule{std::move(*schedule), "schedule " + value};
  }
  FVM_ASSIGN(const std::string text, read_text(value, kMaxScheduleBytes, "a schedule"));
  FVM_ASSIGN(Schedule schedule, in_file(value, parse_schedule(text)));
  return ChosenSchedule{std::move(schedule), value};
}

Result<std::string> read_text(const std::string& path, std::size_t limit, const std::string& kind) {
  FVM_ASSIGN(Source source, in_file(path, Source::open(path)));
  auto text = source.read_rest(limit);
  if (!text && text.error().code == ErrorCode::Refused)
    return in_file(path, refused(formatted("is longer than {} may be: {} bytes", kind, limit)));
  return in_file(path, std::move(text));
}

Error blame(Error error, const ChosenSchedule& schedule, const std::string& path) {
  const std::string& file = culprit(error.where, schedule, path);
  return in_file(file, std::move(error));
}

Result<Program> compile_requested(const Arguments& arguments, const std::string& path, const Model& model,
                                  const std::string& otherwise) {
  FVM_ASSIGN(const Requested requested, requested_of(arguments, model, arguments.get("schedule", otherwise)));
  return reported(arguments, path, requested, compile(model, requested.chosen.schedule, requested.options));
}

Result<Program> compile_requested(const Arguments& arguments, const std::string& path, Model&& model,
                                  const std::string& otherwise) {
  FVM_ASSIGN(const Requested requested, requested_of(arguments, model, arguments.get("schedule", otherwise)));
  return reported(arguments, path, requested,
                  compile(std::move(model), requested.chosen.schedule, requested.options));
}

namespace {

/// Returns a Usage or Refused error for an option of compiling that differs from what the program was compiled with.
Result<void> expect_compiled_as_requested(const Arguments& arguments, const std::string& path,
                                          const Program& program) {
  if (arguments.has("schedule"))
    return usage_error(
        formatted("--schedule: {} is a program, it has its schedule already", single_quoted(path)));
  if (arguments.has("background"))
    return usage_error(
        formatted("--background: {} is a program, compile the model with --background", single_quoted(path)));
  if (arguments.has("samples"))
    return usage_error(
        formatted("--samples: {} is a program, compile the model with --samples", single_quoted(path)));
  const Contract own = program.meta().contract;
  FVM_ASSIGN(const Contract contract, arguments.choice("contract", own));
  if (contract != own)
    return usage_error(
        formatted("--contract: {} is a program compiled for contract {}", single_quoted(path), name_of(own)));
  const bool reordered = own == Contract::Trainer && program.meta().sums_in_model_order == 0;
  if (arguments.has("strict") && reordered)
    return in_file(
        path, refused("the program does not add leaves in the trainer's order, which --strict requires"));
  return {};
}

}  // namespace

Result<Program> requested_program(const Arguments& arguments, const std::string& path,
                                  const std::string& otherwise) {
  FVM_ASSIGN(ModelOrProgram loaded, load_requested(arguments, path));
  if (auto* const model = std::get_if<Model>(&loaded))
    return compile_requested(arguments, path, std::move(*model), otherwise);
  FVM_TRY(expect_compiled_as_requested(arguments, path, std::get<Program>(loaded)));
  return std::move(std::get<Program>(loaded));
}

namespace {

/// Returns the rounds of a program that --rounds asks for; std::nullopt without that option.
Result<std::optional<Rounds>> rounds_of_calls(const Arguments& arguments, const std::string& path,
                                              const Program& program) {
  if (!arguments.has("rounds")) return std::optional<Rounds>();
  const std::string text = arguments.get("rounds");
  if (text == "best")
    return usage_error(formatted("--rounds best: {} is a program, which does not say what the best round is",
                                 single_quoted(path)));
  const std::size_t begins = program.round_begins().size();
  FVM_ASSIGN(const Rounds rounds,
             requested_rounds(begins == 0 ? 0 : static_cast<std::uint32_t>(begins - 1), text));
  return std::optional<Rounds>(rounds);
}

}  // namespace

Result<RequestedProgram> program_to_call(const Arguments& arguments, const std::string& path,
                                         const std::string& otherwise) {
  FVM_ASSIGN(ModelOrProgram loaded, load_file(path));
  if (auto* const model = std::get_if<Model>(&loaded)) {
    FVM_TRY(choose_rounds(arguments, path, *model));
    FVM_ASSIGN(Program program, compile_requested(arguments, path, std::move(*model), otherwise));
    return RequestedProgram{std::move(program), std::nullopt};
  }
  RequestedProgram asked{std::move(std::get<Program>(loaded)), std::nullopt};
  FVM_TRY(expect_compiled_as_requested(arguments, path, asked.program));
  FVM_ASSIGN(asked.rounds, rounds_of_calls(arguments, path, asked.program));
  return asked;
}

Result<RequestedPrograms> requested_programs(const Arguments& arguments, const std::string& path,
                                             const std::string& otherwise) {
  FVM_ASSIGN(ModelOrProgram loaded, load_requested(arguments, path));
  RequestedPrograms asked;
  if (auto* const program = std::get_if<Program>(&loaded)) {
    FVM_TRY(expect_compiled_as_requested(arguments, path, *program));
    asked.programs.push_back(std::move(*program));
    return asked;
  }
  asked.model = std::move(std::get<Model>(loaded));
  for (const std::string& schedule : arguments.all("schedule", otherwise)) {
    FVM_ASSIGN(const Requested requested, requested_of(arguments, *asked.model, schedule));
    FVM_ASSIGN(Program program,
               reported(arguments, path, requested,
                        compile(*asked.model, requested.chosen.schedule, requested.options)));
    asked.programs.push_back(std::move(program));
  }
  return asked;
}

Result<void> expect_other_file(const std::string& output, const std::string& input) {
  std::error_code ignored;
  if (output == "-" || input == "-" || !std::filesystem::is_regular_file(output, ignored)) return {};
  if (!std::filesystem::equivalent(output, input, ignored)) return {};
  return usage_error(formatted("writing {} would overwrite the input", single_quoted(output)));
}

}  // namespace forestvm::cli
