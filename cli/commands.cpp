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

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/nearest.hpp>

#include "cli/io/output_file.hpp"
#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

constexpr std::array kCommands = {&kRun,      &kExplain, &kProximity, &kCompile, &kEncode,  &kDump,
                                  &kAssemble, &kExport,  &kDiff,      &kVerify,  &kInspect, &kBench,
                                  &kTune,     &kDevices, &kHelp,      &kVersion};

int report(const Error& error) {
  std::fprintf(stderr, "forestvm: %s\n", escaped(error.text()).c_str());
  return exit_code(error.code);
}

int report(const Result<void>& done) { return done ? 0 : report(done.error()); }

int report_usage(const std::string& where, const Error& error) {
  const std::string see = where.empty() ? "forestvm --help" : formatted("forestvm {} --help", where);
  return report(
      usage_error(formatted("{}{} (see {})", where.empty() ? "" : where + ": ", error.text(), see)));
}

Result<void> run_guarded(const Command& command, const Arguments& arguments) {
  try {
    return command.run(arguments);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::Environment, "out of memory");
  } catch (const std::length_error&) {
    return fail(ErrorCode::Environment, "out of memory");
  } catch (const std::system_error& error) {  // a thread could not be started
    return fail(ErrorCode::Environment, error.what());
  } catch (const std::exception& bug) {
    return fail(ErrorCode::Internal, std::string("internal error, please report it: ") + bug.what());
  }
}

}  // namespace

std::span<const Command* const> commands() { return kCommands; }

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names(kCommands.size());
  std::transform(kCommands.begin(), kCommands.end(), names.begin(),
                 [](const Command* command) { return std::string_view(command->name); });
  return names;
}

const Command* command_named(std::string_view name) {
  const auto* const found = std::find_if(kCommands.begin(), kCommands.end(),
                                         [name](const Command* command) { return name == command->name; });
  return found == kCommands.end() ? nullptr : *found;
}

int forestvm_main(const std::vector<std::string>& words) {
  if (words.empty()) {
    std::fputs(general_help().c_str(), stderr);
    return exit_code(ErrorCode::Usage);
  }
  std::string word = words.front();
  if (word == "--help" || word == "-h") word = kHelp.name;
  if (word == "--version" || word == "-V") word = kVersion.name;
  const Command* const found = command_named(word);
  if (found == nullptr) {
    const bool option = word.starts_with('-');
    const std::vector<std::string_view> known =
        option ? std::vector<std::string_view>{"--help", "--version"} : command_names();
    return report_usage("", usage_error((option ? "unknown option " : "unknown command ") +
                                        single_quoted(word) + did_you_mean(word, known)));
  }
  const Command& command = *found;
  const auto arguments = parse_arguments(command, {words.begin() + 1, words.end()});
  if (!arguments) return report_usage(command.name, arguments.error());
  if (arguments->has("help")) return report(write_output("-", help(command)));
  const auto done = run_guarded(command, *arguments);
  if (!done && done.error().code == ErrorCode::Usage) return report_usage(command.name, done.error());
  return report(done);
}

}  // namespace forestvm::cli
