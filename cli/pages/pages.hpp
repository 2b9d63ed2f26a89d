// Man pages and shell completions, made from the table of commands. The build writes them to files and `cmake
// --install` puts them where man and the shells look.
#pragma once

#include <string>

#include "cli/command.hpp"

namespace forestvm::cli {

/// Returns forestvm(1), which describes what all commands have in common.
std::string man_overview(const std::string& version);

/// Returns forestvm-COMMAND(1).
std::string man_page(const Command& command, const std::string& version);

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace forestvm::cli
