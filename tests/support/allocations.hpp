// Counts and measures the allocations of a process, and can make them fail, and threads not start. A test
// that links allocations.cpp has its malloc and its pthread_create, also for the shared libraries that it
// loads; under a sanitizer, which has both itself, its operators new and delete.
#pragma once

#include <cstdint>

namespace forestvm::support {

std::uint64_t allocation_count();

/// Bytes of the largest allocation since this was last asked.
std::uint64_t take_largest_allocation();

template <class Work>
std::uint64_t allocations_of(const Work& work) {
  const std::uint64_t before = allocation_count();
  work();
  return allocation_count() - before;
}

enum class Failing { Once, FromThenOn };

/// Allocations succeed `more` times, then fail.
void fail_allocations_after(std::int64_t more, Failing failing);

/// Threads start `more` times, then do not. Not under a sanitizer.
void fail_threads_after(std::int64_t more, Failing failing);

/// Nothing fails any more. Says whether anything has since failures were asked for.
bool stop_failing();

}  // namespace forestvm::support
