// A test case in one text file: a schedule, whose first comments name the model and options for which it is
// compiled (`# model: two_outputs`, `# contract: fast`, `# strict`); a line `---…`; the expected text. In: a
// path. Out: its parts.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/internal/names.hpp>

#include "support/small_models.hpp"

namespace forestvm::support {

struct ScheduleCase {
  std::string schedule;  ///< the text before the separator, comments included
  Model model;
  CompileOptions options;
};

inline ScheduleCase read_case(const std::filesystem::path& path) {
  ScheduleCase result;
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t end = text.starts_with("---") ? 0 : text.find("\n---");
  result.schedule = text.substr(0, end == std::string::npos ? end : end + (end > 0 ? 1 : 0));
  std::string model = "small";
  for (std::size_t at = 0; at < result.schedule.size() && result.schedule[at] == '#';) {
    const std::size_t line_end = std::min(result.schedule.find('\n', at), result.schedule.size());
    const std::string line = result.schedule.substr(at, line_end - at);
    if (line.starts_with("# model: ")) model = line.substr(9);
    if (line == "# strict") result.options.strict = true;
    if (line.starts_with("# contract: ")) {
      const auto contract = by_name<Contract>(line.substr(12));
      if (!contract) throw std::runtime_error(path.string() + ": " + line);
      result.options.contract = *contract;
    }
    at = line_end + 1;
  }
  result.model = small_model(model);
  return result;
}

/// Lists the case files of a folder by name.
inline std::vector<std::string> case_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace forestvm::support
