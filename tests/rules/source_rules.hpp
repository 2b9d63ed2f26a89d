// The rules of the source tree as tables: which folder may include what, and what no file may contain. In:
// the files' paths and text. Out: one line per breach. The tables are in source_rules.cpp; a new dependency
// is one row there.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace forestvm::rules {

/// Maps a path relative to the repository's root ("vm/host/machine.cpp") to the file's text.
using Files = std::map<std::string, std::string>;

/// Returns every breach in `files` as "path:line: what is wrong"; empty if there is none.
std::vector<std::string> breaches(const Files& files);

/// Returns the tracked entries at the top of the repository that are not known, such as a tool's log. `paths` has the
/// paths of all tracked files, relative to the root, one per line.
std::vector<std::string> unknown_entries(const std::string& paths);

/// Reads the text files of the project under `root`: sources, build files, documents. Leaves out tests/data.
Files read_tree(const std::string& root);

}  // namespace forestvm::rules
