// See spawn.hpp.
#include "spawn.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

extern char** environ;

namespace forestvm::cli {
namespace {

constexpr const char* kProgram = FORESTVM_PROGRAM;

/// Makes this process's peak memory its current memory. Linux counts the parent's peak as memory of a program that it
/// starts, so that the tests before would count, too.
void forget_peak() {
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5;
}

int spawned(const std::vector<std::string>& words, posix_spawn_file_actions_t& actions,
            const Streams& streams, rusage& usage, std::string& failure) {
  std::vector<char*> arguments = {const_cast<char*>(kProgram)};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;  // SIGPIPE must end the program, whatever the tests inherited
  sigset_t pipe_signal;
  ::sigemptyset(&pipe_signal);
  ::sigaddset(&pipe_signal, SIGPIPE);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> variables;
  for (const std::string& variable : streams.environment)
    variables.push_back(const_cast<char*>(variable.c_str()));
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(nullptr);
  forget_peak();
  pid_t child = 0;
  const int failed =
      ::posix_spawn(&child, kProgram, &actions, &attributes, arguments.data(), variables.data());
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    failure = std::string("cannot start the program: ") + std::strerror(failed);
    return -1;
  }
  if (streams.meanwhile) streams.meanwhile(child);
  int status = 0;
  ::wait4(child, &status, 0, &usage);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string ProgramTest::content(const std::vector<std::string>& words) const {
  const Outcome outcome = forestvm(words);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return outcome.out;
}

void ProgramTest::expect_error(const std::vector<std::string>& words, int code,
                               const std::string& error) const {
  const Outcome outcome = forestvm(words);
  EXPECT_EQ(outcome.code, code);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find(error), std::string::npos) << outcome.err;
}

Outcome ProgramTest::forestvm(const std::vector<std::string>& words, const Streams& streams) const {
  const std::string in = write("stdin", streams.in);
  const std::string out = streams.out_path.empty() ? file("stdout") : streams.out_path;
  const std::string err = file("stderr");
  std::array<int, 2> pipe_ends = {-1, -1};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, in.c_str(), O_RDONLY, 0);
  if (streams.out_is_closed) {
    ::posix_spawn_file_actions_addclose(&actions, 1);
  } else if (streams.out_has_no_reader) {
    EXPECT_EQ(::pipe2(pipe_ends.data(), O_CLOEXEC), 0);
    ::close(pipe_ends[0]);
    ::posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  } else {
    ::posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  }
  ::posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  Outcome outcome;
  rusage usage{};
  std::string failure;
  outcome.code = spawned(words, actions, streams, usage, failure);
  outcome.peak_mib = static_cast<std::size_t>(usage.ru_maxrss) >> 10;
  for (const timeval& time : {usage.ru_utime, usage.ru_stime})
    outcome.cpu_seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  ::posix_spawn_file_actions_destroy(&actions);
  if (pipe_ends[1] >= 0) ::close(pipe_ends[1]);
  if (streams.out_path.empty()) outcome.out = content_of(out);
  outcome.err = failure.empty() ? content_of(err) : failure;
  std::filesystem::remove(file("stdout"));
  std::filesystem::remove(in);
  std::filesystem::remove(err);
  return outcome;
}

std::string test_data(const std::string& name) { return std::string(FORESTVM_TEST_DATA "/") + name; }

std::string small_lightgbm(const std::string& names) {
  return "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=2\nfeature_names=" +
         names +
         "\nfeature_infos=none none none\n\n"
         "Tree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=0\nthreshold=0.1\ndecision_type=2\nleft_child=-1\n"
         "right_child=-2\nleaf_value=1 2\n\nend of trees\n";
}

}  // namespace forestvm::cli
