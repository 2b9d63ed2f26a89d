// See program_file.hpp.
#include "cli/program_file.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

#include <forestvm/load.hpp>

#include "cli/io/quote.hpp"
#include "cli/io/source.hpp"

namespace forestvm::cli {
namespace {

constexpr std::size_t kLongestSchedule = std::size_t{1} << 20;
constexpr std::size_t kProgramStart = 64;  // bytes from which is_program can tell

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// At most `limit` bytes; one more than that where there are more.
Result<std::string> read_all(Source& source, std::size_t limit) {
  for (std::size_t want = kProgramStart;; want *= 2) {
    FVM_ASSIGN(const std::string_view text, source.peek(std::min(want, limit + 1)));
    if (text.size() < want || text.size() > limit) return std::string(text.substr(0, limit + 1));
  }
}

template <class T>
Result<ModelOrProgram> either(Result<T> loaded) {
  if (!loaded) return loaded.error();
  return ModelOrProgram(std::move(*loaded));
}

/// What a text of compile() is about: a place in the schedule, or the model.
const std::string& culprit(const std::string& text, const ChosenSchedule& schedule, const std::string& path) {
  return text.starts_with("line ") || text.starts_with("directive ") ? schedule.called : path;
}

}  // namespace

Error in_file(const std::string& file, Error error) {
  const std::string name = file == "-" ? "standard input" : file;
  error.where = error.where.empty() ? name : name + ": " + error.where;
  return error;
}

Result<ModelOrProgram> load_file(const std::string& path) {
  FVM_ASSIGN(Source source, in_file(path, Source::open(path)));
  FVM_ASSIGN(const std::string_view start, in_file(path, source.peek(kProgramStart)));
  const bool program = is_program(bytes_of(start));
  if (source.bytes_left()) {  // a file: the loaders map or read it themselves
    return in_file(path, program ? either(Program::load(path)) : either(load_model(path)));
  }
  const LoadLimits limits;
  FVM_ASSIGN(const std::string text, in_file(path, read_all(source, limits.max_bytes)));
  if (text.size() > limits.max_bytes)
    return in_file(path, refused("", "is longer than " + std::to_string(limits.max_bytes) + " bytes"));
  return in_file(path,
                 program ? either(Program::from_bytes(bytes_of(text))) : either(load_model(bytes_of(text))));
}

constinit const Option kScheduleOption = {
    "schedule", '\0', "S", "auto (default), a schedule's name, or a file (a value with a / or a .)"};
constinit const Option kContractOption = {
    "contract", '\0', "C",
    "which bits are promised: trainer (default: the trainer's own), reproducible (the same whatever the "
    "schedule, threads and target) or fast"};
constinit const Option kStrictOption = {"strict", '\0', "",
                                        "refuses what would otherwise be a warning about the contract"};

std::string schedule_notes() {
  std::string text;
  const auto add = [&text](std::string name, std::string_view meaning) {
    name.resize(std::max<std::size_t>(name.size() + 2, 30), ' ');
    text += "  " + name + std::string(meaning) + '\n';
  };
  const auto add_all = [&add](ScheduleBackend backend) {
    for (const NamedSchedule& schedule : named_schedules())
      if (schedule.backend == backend) add(std::string(schedule.name), schedule.meaning);
  };
  text += "Schedules for the host:\n";
  add("auto", "suits the model: plans for a few rows and for blocks of rows in parallel");
  add_all(ScheduleBackend::Host);
  text += "Schedules for GPUs:\n";
  add_all(ScheduleBackend::Gpu);
  return text;
}

Result<ChosenSchedule> choose_schedule(const Arguments& arguments, const Model& model,
                                       const std::string& otherwise) {
  const std::string value = arguments.get("schedule", otherwise);
  if (value.find_first_of("/.") == std::string::npos) {
    auto schedule = schedule_by_name(model, value);
    if (!schedule) return in_file("--schedule", schedule.error());
    return ChosenSchedule{std::move(*schedule), "schedule " + value};
  }
  FVM_ASSIGN(const std::string text, read_text(value, kLongestSchedule, "a schedule"));
  FVM_ASSIGN(Schedule schedule, in_file(value, parse_schedule(text)));
  return ChosenSchedule{std::move(schedule), value};
}

Result<std::string> read_text(const std::string& path, std::size_t limit, const std::string& kind) {
  FVM_ASSIGN(Source source, in_file(path, Source::open(path)));
  FVM_ASSIGN(std::string text, in_file(path, read_all(source, limit)));
  if (text.size() > limit)
    return in_file(path,
                   refused("", "is longer than " + kind + " may be: " + std::to_string(limit) + " bytes"));
  return text;
}

Error blame(Error error, const ChosenSchedule& schedule, const std::string& path) {
  const std::string& file = culprit(error.where, schedule, path);
  return in_file(file, std::move(error));
}

Result<Program> compile_as_asked(const Arguments& arguments, const std::string& path, const Model& model,
                                 const std::string& otherwise) {
  FVM_ASSIGN(const ChosenSchedule chosen, choose_schedule(arguments, model, otherwise));
  CompileOptions options;
  FVM_ASSIGN(options.contract, arguments.choice("contract", options.contract));
  options.strict = arguments.has("strict");
  auto compiled = compile(model, chosen.schedule, options);
  if (!compiled) return blame(compiled.error(), chosen, path);
  for (const std::string& warning : compiled->warnings)
    std::fprintf(stderr, "forestvm: %s: warning: %s\n", escaped(culprit(warning, chosen, path)).c_str(),
                 escaped(warning).c_str());
  if (arguments.has("timings"))
    for (const PassTime& time : compiled->passes)
      std::fprintf(stderr, "%-20.*s %9.3f ms\n", static_cast<int>(time.pass.size()), time.pass.data(),
                   time.seconds * 1e3);
  return std::move(compiled->program);
}

Result<Program> program_as_asked(const Arguments& arguments, const std::string& path,
                                 const std::string& otherwise) {
  FVM_ASSIGN(ModelOrProgram loaded, load_file(path));
  if (const auto* const model = std::get_if<Model>(&loaded))
    return compile_as_asked(arguments, path, *model, otherwise);
  Program& program = std::get<Program>(loaded);
  if (arguments.has("schedule"))
    return usage_error("--schedule: " + in_quotes(path) + " is a program, it has its schedule already");
  const Contract own = program.meta().contract;
  FVM_ASSIGN(const Contract contract, arguments.choice("contract", own));
  if (contract != own)
    return usage_error("--contract: " + in_quotes(path) + " is a program compiled for contract " +
                       std::string(name_of(own)));
  const bool reordered = own == Contract::Trainer && program.meta().sums_in_model_order == 0;
  if (arguments.has("strict") && reordered)
    return in_file(path, refused("", "the program does not add leaves in the trainer's order (--strict)"));
  return std::move(program);
}

Result<void> expect_other_file(const std::string& output, const std::string& input) {
  std::error_code ignored;
  if (output == "-" || input == "-" || !std::filesystem::is_regular_file(output, ignored)) return {};
  if (!std::filesystem::equivalent(output, input, ignored)) return {};
  return usage_error("-o " + in_quotes(output) + " would overwrite the input");
}

}  // namespace forestvm::cli
