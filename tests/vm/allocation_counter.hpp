// Counts and measures the allocations of a process, and can make one fail. A test that links
// allocation_counter.cpp has its operators new and delete, also for the shared libraries that it loads.
#pragma once

#include <cstdint>

namespace forestvm::test {

std::uint64_t allocation_count();

/// Bytes of the largest allocation since this was last asked.
std::uint64_t take_largest_allocation();

/// `more` allocations succeed, then all fail; -1: none does.
void fail_allocations_after(std::int64_t more);

template <class Work>
std::uint64_t allocations_of(const Work& work) {
  const std::uint64_t before = allocation_count();
  work();
  return allocation_count() - before;
}

}  // namespace forestvm::test
