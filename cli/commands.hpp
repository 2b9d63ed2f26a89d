// The table of subcommands, and the way from forestvm's arguments to its exit code.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace forestvm::cli {

extern const Command kRun;        // run.cpp
extern const Command kCompile;    // compile.cpp
extern const Command kEncode;     // encode.cpp
extern const Command kDump;       // dump.cpp
extern const Command kAssemble;   // assemble.cpp
extern const Command kDiff;       // diff.cpp
extern const Command kExport;     // export.cpp
extern const Command kVerify;     // verify.cpp
extern const Command kInspect;    // inspect.cpp
extern const Command kBench;      // bench.cpp
extern const Command kTune;       // tune.cpp
extern const Command kProximity;  // proximity.cpp
extern const Command kExplain;    // explain.cpp
extern const Command kDevices;    // devices.cpp
extern const Command kHelp;       // help.cpp
extern const Command kVersion;    // help.cpp

/// Lists the subcommands in the order in which help prints them.
std::span<const Command* const> commands();
std::vector<std::string_view> command_names();

/// Returns the subcommand called `name`; null if there is none.
const Command* command_named(std::string_view name);

/// Returns the text of forestvm --help.
std::string general_help();

/// Runs one command line, given without the program's name. Data goes to standard output, one line per error
/// to standard error. Returns the exit code.
int forestvm_main(const std::vector<std::string>& words);

}  // namespace forestvm::cli
