// Runs the real forestvm program and keeps what it said.
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
  std::size_t peak_mib = 0;  ///< the most memory that it had; not less than this process had when it began
};

/// Where the standard streams of the program go.
struct Streams {
  std::string in = {};                        ///< what standard input holds
  std::string out_path = {};                  ///< standard output is this file; empty: kept in Outcome::out
  bool out_is_closed = false;                 ///< standard output is not open at all
  bool out_has_no_reader = false;             ///< standard output is a pipe that nobody reads
  std::vector<std::string> environment = {};  ///< "NAME=value", besides what this process has
  std::function<void(pid_t program)> meanwhile = {};  ///< called while it runs
};

/// A test with a folder of its own.
class ProgramTest : public ::testing::Test, protected support::TemporaryFolder {
 protected:
  Outcome forestvm(const std::vector<std::string>& words, const Streams& streams = {}) const;
};

using support::content_of;
std::string test_data(const std::string& name);

}  // namespace forestvm::cli
