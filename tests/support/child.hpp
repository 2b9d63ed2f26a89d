// Work in a forked child, for tests of what the child inherits.
#pragma once

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "support/memory.hpp"

namespace forestvm::support {

/// ThreadSanitizer ends a process that starts threads after a fork.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kChildrenHaveThreads = false;
#else
inline constexpr bool kChildrenHaveThreads = true;
#endif

/// Waits for a child, at most a minute. A child that hangs is killed, which is a failure.
inline ::testing::AssertionResult ended_well(pid_t child) {
  if (child < 0) return ::testing::AssertionFailure() << "no fork";
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (int status = 0; std::chrono::steady_clock::now() < give_up;) {
    if (::waitpid(child, &status, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "the child ended with status " << status;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return ::testing::AssertionFailure() << "the child hangs";
}

/// Forks. The child runs `work`, which returns true if all went well, and ends at once.
template <class Work>
::testing::AssertionResult in_child(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? EXIT_SUCCESS : EXIT_FAILURE);
  return ended_well(child);
}

}  // namespace forestvm::support
