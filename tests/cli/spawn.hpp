// Runs the real forestvm program and keeps its output.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/temporary_folder.hpp"

namespace forestvm::cli {

struct Outcome {
  int code = -1;  ///< exit code, or 128 + signal
  std::string out;
  std::string err;
  /// The program's peak memory in MiB, at least the size of this process when it started the program.
  std::size_t peak_mib = 0;
  double cpu_seconds = 0;  ///< The program's processor time, of all threads.
};

/// The standard streams of the program.
struct Streams {
  std::string in = {};                        ///< content of standard input
  std::string out_path = {};                  ///< file for standard output; empty: kept in Outcome::out
  bool out_is_closed = false;                 ///< true: standard output is closed
  bool out_has_no_reader = false;             ///< true: standard output is a pipe without a reader
  std::vector<std::string> environment = {};  ///< variables "NAME=value" besides this process's
  std::function<void(pid_t program)> meanwhile = {};  ///< function that is called while the program runs
};

/// A test with its own folder.
class ProgramTest : public ::testing::Test, protected support::TemporaryFolder {
 protected:
  Outcome forestvm(const std::vector<std::string>& words, const Streams& streams = {}) const;

  /// Returns what a command prints, which must succeed and print no message.
  std::string content(const std::vector<std::string>& words) const;

  /// Expects a command to end with an exit code and a message that contains `error`, and to print nothing else.
  void expect_error(const std::vector<std::string>& words, int code, const std::string& error) const;
};

using support::content_of;
std::string test_data(const std::string& name);

/// Returns a LightGBM model of one tree, which answers 1 if the first of three features is at most 0.1, otherwise 2.
std::string small_lightgbm(const std::string& names);

}  // namespace forestvm::cli
