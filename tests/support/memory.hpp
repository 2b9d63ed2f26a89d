// How much memory a process takes, for tests that bound it.
#pragma once

#include <cstddef>
#include <fstream>
#include <string>

namespace forestvm::support {

/// Sanitizers keep memory that was freed, and shadows of all: what a process takes says nothing there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kMemoryIsMeasured = false;
#else
inline constexpr bool kMemoryIsMeasured = true;
#endif

/// A line of /proc/self/status in MiB: "VmRSS", what this process has in memory, or "VmHWM", the most that it
/// ever had.
inline std::size_t memory_mib(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::size_t kib = 0;
  while (status >> word)
    if (word == name + ":") status >> kib;
  return kib >> 10;
}

}  // namespace forestvm::support
