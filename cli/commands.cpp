// See commands.hpp.
#include "cli/commands.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "cli/io/output_file.hpp"
#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

constexpr std::array kCommands = {&kRun,  &kCompile, &kEncode,  &kDump,  &kAssemble, &kExport,
                                  &kDiff, &kVerify,  &kInspect, &kBench, &kDevices};

std::string general_help() {
  std::string text =
      "forestvm: predicts with trained decision forests on a bytecode VM\n\n"
      "Usage:\n  forestvm COMMAND [arguments]\n  forestvm COMMAND --help\n  forestvm "
      "--version\n\nCommands:\n";
  for (const Command* command : kCommands) {
    std::string name = command->name;
    name.resize(10, ' ');
    text += "  " + name + command->meaning + '\n';
  }
  return text + "\nExample:\n  forestvm run model.json rows.csv -o predictions.npy\n\n" + kExitCodes;
}

int report(const Error& error) {
  std::fprintf(stderr, "forestvm: %s\n", escaped(error.text()).c_str());
  return exit_code(error.code);
}

int report(const Result<void>& done) { return done ? 0 : report(done.error()); }

int report_usage(const std::string& where, const Error& error) {
  const std::string see = where.empty() ? "forestvm --help" : "forestvm " + where + " --help";
  return report(usage_error((where.empty() ? "" : where + ": ") + error.text() + " (see " + see + ")"));
}

Result<void> run_guarded(const Command& command, const Arguments& arguments) {
  try {
    return command.run(arguments);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::Environment, "", "out of memory"};
  } catch (const std::length_error&) {
    return Error{ErrorCode::Environment, "", "out of memory"};
  } catch (const std::system_error& error) {  // threads that cannot be started
    return Error{ErrorCode::Environment, "", error.what()};
  } catch (const std::exception& bug) {
    return Error{ErrorCode::Internal, "", std::string("internal error, please report it: ") + bug.what()};
  }
}

}  // namespace

std::span<const Command* const> commands() { return kCommands; }

int forestvm_main(const std::vector<std::string>& words) {
  if (words.empty()) {
    std::fputs(general_help().c_str(), stderr);
    return exit_code(ErrorCode::Usage);
  }
  const std::string& word = words.front();
  if (word == "--help" || word == "-h") return report(write_output("-", general_help()));
  if (word == "--version") return report(write_output("-", "forestvm " FORESTVM_VERSION "\n"));
  const auto is_named = [&word](const Command* command) { return word == command->name; };
  const auto* const found = std::find_if(kCommands.begin(), kCommands.end(), is_named);
  if (found == kCommands.end())
    return report_usage(
        "", usage_error((word.starts_with('-') ? "unknown option " : "unknown command ") + in_quotes(word)));
  const Command& command = **found;
  const auto arguments = parse_arguments(command, {words.begin() + 1, words.end()});
  if (!arguments) return report_usage(command.name, arguments.error());
  if (arguments->has("help")) return report(write_output("-", help(command)));
  const auto done = run_guarded(command, *arguments);
  if (!done && done.error().code == ErrorCode::Usage) return report_usage(command.name, done.error());
  return report(done);
}

}  // namespace forestvm::cli
