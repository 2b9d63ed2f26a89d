// Man pages and shell completions, made from the tables of commands. In: commands(). Out: texts, which the
// build writes to files and `cmake --install` puts where man and the shells look.
#pragma once

#include <string>

#include "cli/command.hpp"

namespace forestvm::cli {

/// forestvm(1): what all commands have in common.
std::string man_overview(const std::string& version);

/// forestvm-COMMAND(1).
std::string man_page(const Command& command, const std::string& version);

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace forestvm::cli
