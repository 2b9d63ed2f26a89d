// Writes the man pages and completions to a folder: forestvm_pages FOLDER. The build runs it; it is not
// installed.
#include <cstdio>
#include <fstream>
#include <string>

#include <forestvm/internal/formatted.hpp>

#include "cli/commands.hpp"
#include "cli/pages/pages.hpp"

namespace {

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "forestvm_pages: %s cannot be written\n", path.c_str());
  return static_cast<bool>(file);
}

}  // namespace

int main(int count, char** words) {
  using namespace forestvm::cli;
  if (count != 2) {
    std::fputs("usage: forestvm_pages FOLDER\n", stderr);
    return 2;
  }
  const std::string folder = std::string(words[1]) + "/";
  bool written = write(folder + "forestvm.1", man_overview(FORESTVM_VERSION));
  for (const Command* command : commands())
    written &= write(forestvm::formatted("{}forestvm-{}.1", folder, command->name),
                     man_page(*command, FORESTVM_VERSION));
  written &= write(folder + "forestvm.bash", bash_completion());
  written &= write(folder + "_forestvm", zsh_completion());
  written &= write(folder + "forestvm.fish", fish_completion());
  return written ? 0 : 1;
}
