// forestvm help and version.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/nearest.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/schedule.hpp>

#include "cli/commands.hpp"
#include "cli/io/output_file.hpp"
#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

constexpr std::string_view kSchedules = "schedules";

std::string named_schedules_text() {
  std::string text;
  const auto add_all = [&text](ScheduleBackend backend) {
    for (const NamedSchedule& schedule : named_schedules())
      if (schedule.backend == backend) append_row(text, std::string(schedule.name), schedule.meaning, 30);
  };
  text += "Schedules for the host:\n";
  append_row(text, "auto", "chosen for the model: plans for a few rows and for blocks of rows in parallel",
             30);
  add_all(ScheduleBackend::Host);
  text += "Schedules for GPUs:\n";
  add_all(ScheduleBackend::Gpu);
  return text;
}

std::string schedules_page() {
  std::string text =
      "A schedule says how the two loops of inference, batch over rows and tree over trees, are cut,\n"
      "ordered and run. Predictions keep the bits that --contract promises. Directives stand on lines of\n"
      "their own or are separated by ; and # begins a comment:\n"
      "\n"
      "  tile(batch, b0, b1, 64)      # for b0 in rows step 64: for b1 in b0\n"
      "  reorder(b0, tree, b1)        # tree by tree inside a block of rows\n"
      "  parallel(b0)                 # blocks in parallel\n\n"
      "Directives, with optional arguments in brackets:\n";
  for (const LanguageRow& row : directive_rows()) append_row(text, row.form, row.meaning, 44);
  text += "\nTheir arguments:\n";
  for (const LanguageRow& row : parameter_rows()) append_row(text, row.form, row.meaning, 14);
  return formatted(
      "{}\n--schedule takes the name of a schedule, the text of one, or a file with one:\n  --schedule xgboost\n  --schedule 'tile(batch, b0, b1, 64); reorder(b0, tree, b1); parallel(b0)'\n  --schedule ./my.schedule\n\n{}",
      text, named_schedules_text());
}

std::vector<std::string_view> topics() {
  std::vector<std::string_view> names = command_names();
  names.push_back(kSchedules);
  return names;
}

Result<void> run_help(const Arguments& arguments) {
  if (!arguments.has("TOPIC")) return write_output("-", general_help());
  const std::string topic = arguments.get("TOPIC");
  if (topic == kSchedules) return write_output("-", schedules_page());
  if (const Command* const command = command_named(topic)) return write_output("-", help(*command));
  return usage_error(
      formatted("there is no help on {}{}", single_quoted(topic), did_you_mean(topic, topics())));
}

Result<void> run_version(const Arguments&) { return write_output("-", "forestvm " FORESTVM_VERSION "\n"); }

}  // namespace

std::string general_help() {
  std::string text =
      "forestvm: predicts with trained decision forests on a bytecode VM\n\n"
      "Usage:\n  forestvm COMMAND [arguments]\n\nCommands:\n";
  std::size_t longest = 0;
  for (const Command* command : commands())
    longest = std::max(longest, std::string_view(command->name).size());
  for (const Command* command : commands()) append_row(text, command->name, command->meaning, longest + 4);
  return formatted(
      "{}\nforestvm help COMMAND (or forestvm COMMAND --help) explains a command,\nforestvm help schedules the schedule language.\n\nExample:\n  forestvm run model.json rows.csv -o predictions.npy\n\n{}",
      text, kExitCodes);
}

const Command kHelp = {
    "help",
    "explains a command, or the schedule language",
    {"help [TOPIC]"},
    {{"TOPIC", "a command's name, or schedules: the schedule language and the named schedules", {topics}}},
    {},
    "  forestvm help run\n"
    "  forestvm help schedules\n",
    nullptr,
    run_help,
};

const Command kVersion = {
    "version", "prints the version", {"version"}, {}, {}, "  forestvm version\n", nullptr, run_version,
};

}  // namespace forestvm::cli
