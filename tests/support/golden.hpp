// Golden text files. expect_golden(path, text) compares, or rewrites the file if the test was started with
// --update (or with the environment variable FORESTVM_UPDATE), so that a change of output is reviewed as a
// diff.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace forestvm::support {

namespace golden_detail {

inline std::string_view line_at(std::string_view text, std::size_t begin) {
  return text.substr(begin, text.find('\n', begin) - begin);
}

/// Returns the first line in which two texts differ, with its number; empty if they are equal.
inline std::string first_difference(std::string_view expected, std::string_view actual) {
  if (expected == actual) return {};
  std::size_t at = 0, line = 1;
  for (;; ++line) {
    const std::string_view a = line_at(expected, at), b = line_at(actual, at);
    const std::size_t next = at + a.size() + 1;
    if (a == b && next <= expected.size() && next <= actual.size()) {
      at = next;
      continue;
    }
    const auto shown = [&](std::string_view text, std::string_view its_line) {
      return at >= text.size() ? std::string("  (the text has ended)") : "  " + std::string(its_line);
    };
    if (a == b)
      return "line " + std::to_string(line) + ": one text has no line end here\n  " + std::string(a);
    return "line " + std::to_string(line) + "\nexpected:\n" + shown(expected, a) + "\nactual:\n" +
           shown(actual, b);
  }
}

inline std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace golden_detail

/// Expects that the file at `path` has the content `text`.
inline void expect_golden(const std::string& path, const std::string& text) {
  const std::optional<std::string> expected = golden_detail::read_text(path);
  if (expected == text) return;
  if (std::getenv("FORESTVM_UPDATE") != nullptr) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    EXPECT_TRUE(file.good()) << "cannot write " << path;
    return;
  }
  ADD_FAILURE()
      << path << (expected ? " differs at " : " is absent")
      << (expected ? golden_detail::first_difference(*expected, text) : "")
      << "\nto accept the new text: run the test with --update (or FORESTVM_UPDATE=1), review the diff";
}

}  // namespace forestvm::support
