// The memory of a process, for tests that bound it.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace forestvm::support {

/// Sanitizers keep freed memory and shadow memory, so that a process's memory is not measured there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FVM_SANITIZED 1
#else
#define FVM_SANITIZED 0
#endif
inline constexpr bool kMemoryIsMeasured = FVM_SANITIZED == 0;

/// Returns a line of /proc/self/status in MiB: "VmRSS", the process's current memory, or "VmHWM", its peak.
inline std::size_t memory_mib(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::size_t kib = 0;
  while (status >> word)
    if (word == name + ":") status >> kib;
  return kib >> 10;
}

/// Returns the number of threads of this process.
inline std::size_t thread_count() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(threads), end(threads)));
}

/// Waits until this process has at most `count` threads; a joined thread may exist a moment longer.
inline bool has_at_most_threads(std::size_t count) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (thread_count() > count) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace forestvm::support
