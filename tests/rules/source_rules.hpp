// The rules of the source tree as tables: which folder may include what, and what no file may say. In: the
// files' paths and text. Out: one line per breach. The tables are in source_rules.cpp; a new dependency is
// one row there.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace forestvm::rules {

/// Path relative to the repository's root ("vm/host/machine.cpp") -> the file's text.
using Files = std::map<std::string, std::string>;

/// Every breach in `files`, as "path:line: what is wrong"; empty if the tree is clean.
std::vector<std::string> breaches(const Files& files);

/// The text files of ours under `root`: sources, build files, documents. Not the data under tests/data.
Files read_tree(const std::string& root);

}  // namespace forestvm::rules
