// forestvm dump: prints a stage of a model on its way to a program, or the instruction set.
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <forestvm/compile.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/program_tools.hpp>

#include "cli/commands.hpp"
#include "cli/io/output_file.hpp"
#include "cli/io/quote.hpp"
#include "cli/program_file.hpp"

namespace forestvm::cli {
namespace {

/// Returns the text of a stage. If a later pass refuses the schedule, earlier stages are still printed.
Result<std::string> stage_text(const Arguments& arguments, const std::string& path, Model model,
                               Stage stage) {
  std::optional<std::string> text;
  CompileOptions options;
  FVM_ASSIGN(const ChosenSchedule chosen,
             choose_schedule(arguments.get("schedule", "auto"), model, options.contract));
  options.on_stage = [&text, stage](Stage shown, const std::function<std::string()>& print) {
    if (shown == stage) text = print();
  };
  const auto compiled = compile(std::move(model), chosen.schedule, options);
  if (text) return std::move(*text);
  if (!compiled) return blame(compiled.error(), chosen, path);
  FVM_CHECK(stage == Stage::Program);
  return compiled->program.disassemble();
}

Result<void> run_dump(const Arguments& arguments) {
  if (arguments.has("isa")) {
    if (arguments.has("FILE") || arguments.has("stage") || arguments.has("schedule"))
      return usage_error("--isa takes no FILE, --stage or --schedule");
    return write_output("-", isa_page());
  }
  FVM_ASSIGN(const std::string path, required(arguments, "FILE"));
  const auto program_stage = static_cast<std::size_t>(Stage::Program);
  FVM_ASSIGN(const std::size_t stage, arguments.choice("stage", kStageNames, program_stage));
  FVM_ASSIGN(ModelOrProgram loaded, load_requested(arguments, path));
  if (const auto* const program = std::get_if<Program>(&loaded)) {
    if (arguments.has("schedule"))
      return usage_error(
          formatted("--schedule: {} is a program, it has its schedule already", single_quoted(path)));
    if (stage != program_stage)
      return usage_error(
          formatted("--stage: {} is a program, its only stage is program", single_quoted(path)));
    return write_output("-", program->disassemble());
  }
  FVM_ASSIGN(const std::string text,
             stage_text(arguments, path, std::get<Model>(std::move(loaded)), static_cast<Stage>(stage)));
  return write_output("-", text);
}

}  // namespace

const Command kDump = {
    "dump",
    "prints a stage of the compilation, or the instruction set",
    {"dump FILE [--stage STAGE] [--schedule S] [--rounds A:B]", "dump --isa"},
    {{"FILE", "a trainer's model file, or a .fvm program (stage program only); - is standard input"}},
    {{"stage", '\0', "STAGE", "model, tiled, loops, legalized or program (default)", {listed<kStageNames>}},
     kScheduleOption,
     kRoundsOption,
     {"isa", '\0', "", "prints the instruction set as a Markdown page; takes no FILE"}},
    "  forestvm dump model.json --stage loops --schedule my.schedule\n"
    "  forestvm dump model.fvm\n",
    nullptr,
    run_dump,
};

}  // namespace forestvm::cli
