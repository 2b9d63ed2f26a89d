// The table of subcommands, and forestvm's way from arguments to exit code.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace forestvm::cli {

extern const Command kRun;       // run.cpp
extern const Command kCompile;   // compile.cpp
extern const Command kEncode;    // encode.cpp
extern const Command kDump;      // dump.cpp
extern const Command kAssemble;  // assemble.cpp
extern const Command kDiff;      // diff.cpp
extern const Command kExport;    // export.cpp
extern const Command kVerify;    // verify.cpp
extern const Command kInspect;   // inspect.cpp
extern const Command kBench;     // bench.cpp
extern const Command kDevices;   // devices.cpp
extern const Command kHelp;      // help.cpp
extern const Command kVersion;   // help.cpp

/// In the order in which help lists them.
std::span<const Command* const> commands();
std::vector<std::string_view> command_names();

/// Null if there is none.
const Command* command_named(std::string_view name);

/// What forestvm --help prints.
std::string general_help();

/// Runs one command line, without the program's name. Data goes to standard output, one line per error to
/// standard error. Result: the exit code.
int forestvm_main(const std::vector<std::string>& words);

}  // namespace forestvm::cli
