// The rules' tables, and the line-by-line reader that applies them.
#include "source_rules.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>

namespace forestvm::rules {

namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const Strings kFolders = {"include", "frontend", "scheduler", "vm",   "kernels", "bindings",
                          "cli",     "tests",    "bench",     "docs", "examples"};

/// The other entries at the top of the repository. A new one is a decision, not an accident.
const std::set<std::string> kTopEntries = {
    ".ci",           ".clang-format",  ".clang-tidy",       ".gitignore",
    "CHANGELOG.md",  "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md",
    "LICENSE",       "README.md",      "SECURITY.md",       "dev",
    "pyproject.toml"};

/// The folders that stand on top of the others and may include all of them.
const Strings kOnTop = {"cli", "bindings/python", "tests", "bench", "examples"};

/// A room is a subfolder of vm or kernels. It may include itself and the rooms in `sees`. The table of libraries in
/// test_link_graph.cpp follows the same order.
struct Room {
  std::string folder;
  Strings sees;
};
const std::vector<Room> kRooms = {
    {"vm/program", {}},
    {"vm/call", {"vm/program"}},
    {"vm/host", {"vm/call", "vm/program"}},
    {"vm/export_c", {"vm/call", "vm/program"}},
    {"kernels/link", {}},
    {"kernels/backend", {"kernels/link"}},
    {"kernels/account", {"kernels/link", "kernels/backend"}},
    {"kernels/vendor", {}},
    {"kernels/device", {"kernels/link", "kernels/vendor"}},
    {"kernels/emulator", {"kernels/backend", "kernels/device", "kernels/link", "kernels/vendor"}},
    {"kernels/gpu", {"kernels/backend", "kernels/device", "kernels/link", "kernels/vendor"}},
};

/// The home of a dependency: an include that starts with `prefix` may only stand under these folders. The
/// longest matching prefix applies.
struct Home {
  std::string prefix;
  Strings folders;
};
const std::vector<Home> kHomes = {
    {"nlohmann/", {"frontend", "cli", "tests"}},  // cli: writes JSON
    {"zlib.h", {"frontend", "tests"}},
    {"expat.h", {"frontend"}},
    {"google/protobuf/", {"frontend"}},
    {"tbb/", {"vm/host"}},
    {"oneapi/tbb/", {"vm/host"}},
    {"xxhash.h", {"vm/program", "tests"}},
    {"boost/", {"frontend", "scheduler", "vm", "cli", "tests"}},
    {"boost/context", {"kernels/vendor/emulator"}},
    {"boost/program_options", {"cli"}},
    {"gtest/", {"tests"}},
    {"gmock/", {"tests"}},
    {"benchmark/", {"bench"}},
    {"cuda", {"kernels"}},
    {"hip/", {"kernels"}},
    {"cpuid.h", {"vm/host/targets"}},
    {"immintrin.h", {"vm/host/simd", "vm/host/targets"}},
    {"xmmintrin.h", {"vm/host/targets", "include/forestvm/internal/float_environment.hpp"}},
    {"tmmintrin.h", {"vm/host/simd"}},
    {"emmintrin.h", {"vm/host/simd"}},
    {"arm_neon.h", {"vm/host"}},
    {"built_targets.def", {"vm/host/targets"}},  // CMake writes it
    {"Python.h", {"bindings/python"}},
    {"pybind11/", {"bindings/python"}},
    {"nanobind/", {"bindings/python"}},
};

/// System headers besides the C++ standard library's.
const std::set<std::string> kSystem = {"dirent.h",
                                       "dlfcn.h",
                                       "errno.h",
                                       "fcntl.h",
                                       "malloc.h",
                                       "pthread.h",
                                       "sched.h",
                                       "signal.h",
                                       "sanitizer/asan_interface.h",
                                       "spawn.h",
                                       "stddef.h",
                                       "stdint.h",
                                       "sanitizer/tsan_interface.h",
                                       "pty.h",
                                       "sys/ioctl.h",
                                       "sys/mman.h",
                                       "sys/stat.h",
                                       "sys/time.h",
                                       "sys/types.h",
                                       "sys/uio.h",
                                       "sys/resource.h",
                                       "sys/wait.h",
                                       "unistd.h"};

/// The standard headers that headers compiled by nvcc and hipcc may include.
const std::set<std::string> kDeviceSafe = {"bit",     "utility", "cmath",  "cstddef",
                                           "cstdint", "cstring", "limits", "type_traits"};

/// Headers that code running programs never includes: they are about models and schedules.
const std::set<std::string> kNotAtRunTime = {"forestvm/compile.hpp",
                                             "forestvm/forestvm.hpp",
                                             "forestvm/load.hpp",
                                             "forestvm/model.hpp",
                                             "forestvm/named_schedules.hpp",
                                             "forestvm/schedule.hpp",
                                             "forestvm/rounds.hpp",
                                             "forestvm/internal/statistics.hpp",
                                             "forestvm/internal/schedule.def",
                                             "forestvm/internal/schedule_words.def"};
const Strings kRunTime = {"vm", "kernels", "bindings/c", "include/forestvm/core"};

/// The folders in which conditions on macros of the compiler's vendor or CPU may stand.
const Strings kKnowsTheMachine = {"kernels/vendor", "vm/host/targets", "vm/host/simd",
                                  "include/forestvm/core/platform.hpp",
                                  "include/forestvm/internal/float_environment.hpp"};
const std::regex kMachineCondition(
    R"(^\s*#\s*(if|ifdef|ifndef|elif)\b.*\b(__(AVX|SSE|FMA|BMI|CUDA|HIP|NV|AMD|ARM|aarch64|x86_64|i386|powerpc|riscv)|_M_(X64|IX86|ARM)))");

/// A word that no file may contain. It is written in two parts so that this file does not contain it.
struct Word {
  std::regex pattern;
  std::string what;
};
const std::vector<Word> kWords = {
    {std::regex("\\b(TO"
                "DO|FIX"
                "ME|XX"
                "X|HA"
                "CK)\\b"),
     "unfinished work left in a file"},
    {std::regex("(^|[^A-Za-z0-9_.])/(ho"
                "me|ro"
                "ot|wo"
                "rk|fa"
                "rm|Us"
                "ers|m"
                "nt)/"),
     "a path of one machine"},
};

/// A text that only these files under some folders may contain.
struct Confined {
  std::regex pattern;
  Strings folders;
  Strings homes;
  std::string what;
};
const std::vector<Confined> kConfined = {
    {std::regex("\\b(Temp"
                "Dir|temp_"
                "directory_path|mk"
                "dtemp|mk"
                "stemp|tmp"
                "nam|tmp"
                "file)\\b|\"/t"
                "mp"),
     {"tests"},
     {"tests/support/temporary_folder.cpp"},
     "a test writes to a folder of its own, support::TemporaryFolder: another may run beside it"},
    {std::regex("<(RowBlock|CsrRows|CodedRows|DeviceRows)>\\("),
     {"vm", "kernels", "bindings"},
     {"vm/call/row_reader.cpp", "vm/call/row_source.cpp"},
     "the rows of a call are resolved once, by RowReader: ask the RowSource"},
    {std::regex("^#include \"scheduler/passes/emit.hpp\""),
     {"scheduler"},
     {"scheduler/passes/emit_code.cpp", "scheduler/passes/emit_columns.cpp",
      "scheduler/passes/emit_forest.cpp", "scheduler/passes/emit_paths.cpp",
      "scheduler/passes/emit_program.cpp"},
     "passes share nothing but the state of the compilation: emit.hpp belongs to emit-program"},
    {std::regex("^[^\"]*\\bdefault:"),
     {"include", "vm", "kernels", "scheduler", "cli", "bindings"},
     {"cli/command.cpp"},  // the kinds of a library's errors
     "a default takes new opcodes, outputs and layouts without a word: list the cases, the compiler then names each "
     "switch that a new row must extend"},
    {std::regex(R"(\{ErrorCode::\w+,|\brefused\("",|\bfail\(ErrorCode::\w+, "",)"),
     {"include", "frontend", "scheduler", "vm", "kernels", "cli", "bindings"},
     {"include/forestvm/result.hpp"},
     "an error is made by fail, refused or usage; one whose place the caller adds is made without a place"},
    {std::regex("^.{121}"),
     {"bindings/python/forestvm", "bindings/python/tests", "bindings/python/tests_engines",
      "examples/engines"},
     {},
     "a line of more than 120 bytes"},
    {std::regex("^(?=.{121})\\s*//"),
     {"include", "frontend", "scheduler", "vm", "kernels", "cli", "bindings", "bench", "tests", "examples"},
     {},
     "a comment's line of more than 120 bytes"},
};

const std::regex kInclude(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");

bool under(const std::string& path, const std::string& folder) {
  return path == folder ||
         (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/');
}

bool under_any(const std::string& path, const Strings& folders) {
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& f) { return under(path, f); });
}

std::string top_folder(const std::string& path) { return path.substr(0, path.find('/')); }

bool is_ours(const std::string& include) {
  return include.find('/') != std::string::npos &&
         std::find(kFolders.begin(), kFolders.end(), top_folder(include)) != kFolders.end();
}

bool is_source(const std::string& path) {
  static const std::set<std::string> kinds = {".cpp", ".hpp", ".h", ".cu", ".cuh", ".def", ".inl"};
  return kinds.contains(fs::path(path).extension().string());
}

const Home* home_of(const std::string& include) {
  const Home* best = nullptr;
  for (const Home& home : kHomes) {
    if (include.starts_with(home.prefix) && (!best || home.prefix.size() > best->prefix.size())) best = &home;
  }
  return best;
}

std::string joined(const Strings& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all;
}

/// Returns what is wrong with `#include <include>` in `path`; empty if nothing is.
std::string angle_breach(const std::string& path, const std::string& include) {
  const bool device_safe = under(path, "include/forestvm/core");
  if (include.starts_with("forestvm/")) {
    if (device_safe && !include.starts_with("forestvm/core/")) return "core includes only core";
    return "";
  }
  if (const Home* home = home_of(include)) {
    if (under_any(path, home->folders)) return "";
    return "<" + include + "> has its home in " + joined(home->folders);
  }
  const bool standard = include.find_first_of("./") == std::string::npos;
  if (!standard && !kSystem.contains(include))
    return "<" + include + "> has no home yet: give it a row in tests/rules";
  if (device_safe && !kDeviceSafe.contains(include)) return "<" + include + "> is not for device code";
  return "";
}

const Room* room_of(const std::string& path) {
  const auto room = std::find_if(kRooms.begin(), kRooms.end(),
                                 [&](const Room& candidate) { return under(path, candidate.folder); });
  return room == kRooms.end() ? nullptr : &*room;
}

/// Returns what is wrong with an include of `target` in `path`, two files of one folder; empty if nothing is.
std::string room_breach(const std::string& path, const std::string& target) {
  const Room* const from = room_of(path);
  const Room* const to = room_of(target);
  if (from == nullptr || to == nullptr || from == to || under_any(target, from->sees)) return "";
  return from->folder + " includes " + to->folder + ": it sees " +
         (from->sees.empty() ? "no other room" : joined(from->sees));
}

/// Returns what is wrong with `#include "include"` in `path`; empty if nothing is.
std::string quote_breach(const std::string& path, const std::string& include) {
  const std::string top = top_folder(path);
  if (top == "include") return "the shared headers include each other as <forestvm/…>";
  const std::string target =
      is_ours(include) ? include
                       : (fs::path(path).parent_path() / include).lexically_normal().generic_string();
  if (top_folder(target) == "include") return "the shared headers are included as <forestvm/…>";
  if (top_folder(target) == top) return room_breach(path, target);
  if (under_any(path, kOnTop)) return "";
  return top + " includes " + top_folder(target) + ": a folder includes <forestvm/…> and itself";
}

/// Calls `visit(line number, line)` for every line of `text`.
void for_each_line(const std::string& text,
                   const std::function<void(std::size_t, const std::string&)>& visit) {
  std::istringstream lines(text);
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) visit(number, line);
}

/// Adds the shared headers that `path` includes, directly or through other shared headers, each with the header by way
/// of which it is included.
void shared_headers_seen(const Files& files, const std::string& path, const std::string& way,
                         std::map<std::string, std::string>& seen) {
  const auto file = files.find(path);
  if (file == files.end()) return;
  for_each_line(file->second, [&](std::size_t, const std::string& line) {
    std::smatch match;
    if (!std::regex_search(line, match, kInclude) || !match[2].str().starts_with("forestvm/")) return;
    const std::string header = match[2];
    if (seen.emplace(header, way).second)
      shared_headers_seen(files, "include/" + header, way + " > " + header, seen);
  });
}

void check_lines(const std::string& path, const std::string& text, std::vector<std::string>& found) {
  const bool source = is_source(path);
  for_each_line(text, [&](std::size_t number, const std::string& line) {
    const auto report = [&](const std::string& what) {
      if (!what.empty()) found.push_back(path + ":" + std::to_string(number) + ": " + what);
    };
    for (const Word& word : kWords) {
      if (std::regex_search(line, word.pattern)) report(word.what);
    }
    for (const Confined& confined : kConfined) {
      if (under_any(path, confined.folders) && !under_any(path, confined.homes) &&
          std::regex_search(line, confined.pattern))
        report(confined.what);
    }
    const std::size_t first = line.find_first_not_of(" \t");
    if (!source || first == std::string::npos || line[first] != '#') return;
    std::smatch match;
    if (std::regex_search(line, match, kInclude)) {
      report(match[1] == "<" ? angle_breach(path, match[2]) : quote_breach(path, match[2]));
    }
    if (std::regex_search(line, kMachineCondition) && !under_any(path, kKnowsTheMachine)) {
      report("a condition on vendor or CPU outside vendor/, targets/ and simd/");
    }
  });
}

void check_run_time(const Files& files, const std::string& path, std::vector<std::string>& found) {
  std::map<std::string, std::string> seen;
  shared_headers_seen(files, path, path, seen);
  for (const auto& [header, way] : seen) {
    if (kNotAtRunTime.contains(header))
      found.push_back(way + ": what runs programs must not see <" + header + ">");
  }
}

/// Tests are compiled in batches, where names in anonymous namespaces meet. So each file has a namespace of its own.
void check_test_namespace(const std::string& path, const std::string& text, std::vector<std::string>& found) {
  const fs::path file(path);
  const std::string name = file.stem().string();
  if (!under(path, "tests") || file.extension() != ".cpp" || !name.starts_with("test_")) return;
  if (text.find("::" + name + " {\n") == std::string::npos)
    found.push_back(path + ": its tests stand in no namespace forestvm::...::" + name);
}

}  // namespace

std::vector<std::string> breaches(const Files& files) {
  std::vector<std::string> found;
  for (const auto& [path, text] : files) {
    check_lines(path, text, found);
    check_test_namespace(path, text, found);
    if (is_source(path) && under_any(path, kRunTime)) check_run_time(files, path, found);
  }
  return found;
}

Strings unknown_entries(const std::string& paths) {
  std::set<std::string> unknown;
  for_each_line(paths, [&](std::size_t, const std::string& path) {
    const std::string entry = top_folder(path);
    if (!kTopEntries.contains(entry) && std::find(kFolders.begin(), kFolders.end(), entry) == kFolders.end())
      unknown.insert(entry);
  });
  return {unknown.begin(), unknown.end()};
}

Files read_tree(const std::string& root) {
  static const std::set<std::string> documents = {".md",    ".txt",  ".py",   ".sh",
                                                  ".cmake", ".json", ".toml", ".yml"};
  Files files;
  const auto read = [&](const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    files[fs::relative(file, root).generic_string()] = {std::istreambuf_iterator<char>(in), {}};
  };
  for (const char* name : {"CMakeLists.txt", "CMakePresets.json", "README.md", "CONTRIBUTING.md",
                           "CHANGELOG.md", "SECURITY.md", "dev", ".ci/run"}) {
    if (fs::is_regular_file(fs::path(root) / name)) read(fs::path(root) / name);
  }
  for (const std::string& folder : kFolders) {
    if (!fs::is_directory(fs::path(root) / folder)) continue;
    for (auto entry = fs::recursive_directory_iterator(fs::path(root) / folder); entry != fs::end(entry);
         ++entry) {
      const std::string path = fs::relative(entry->path(), root).generic_string();
      const bool data = path.starts_with("tests/data/") && entry->path().extension() == ".json";
      if (!entry->is_regular_file() || data) continue;
      if (is_source(path) || documents.contains(entry->path().extension().string())) read(entry->path());
    }
  }
  return files;
}

}  // namespace forestvm::rules
