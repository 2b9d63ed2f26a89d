// Counts and measures the allocations of a process, and can make allocations and starts of threads fail. In a
// test that links allocations.cpp, this malloc and pthread_create also serve the shared libraries that it
// loads. Sanitizers have their own malloc and pthread_create; there only operators new and delete are
// replaced.
#pragma once

#include <cstdint>

namespace forestvm::support {

std::uint64_t allocation_count();

/// Returns the size in bytes of the largest allocation since the last call.
std::uint64_t take_largest_allocation();

template <class Work>
std::uint64_t allocations_of(const Work& work) {
  const std::uint64_t before = allocation_count();
  work();
  return allocation_count() - before;
}

enum class Failing { Once, FromThenOn };

/// Lets `more` allocations succeed; the next ones fail.
void fail_allocations_after(std::int64_t more, Failing failing);

/// Lets `more` threads start; the next ones fail. Does nothing under a sanitizer.
void fail_threads_after(std::int64_t more, Failing failing);

/// Ends all failures. Returns whether anything failed since they were requested.
bool stop_failing();

}  // namespace forestvm::support
