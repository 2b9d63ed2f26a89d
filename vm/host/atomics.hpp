// Atomic additions of host threads to one sum: the Atomics of core/sums.hpp. Loops end with a barrier of
// their own, so the order of memory accesses around an addition does not matter.
#pragma once

#include <atomic>

namespace forestvm::host {

struct Atomics {
  template <class T>
  static T fetch_add(T& sum, T more) {
    return std::atomic_ref<T>(sum).fetch_add(more, std::memory_order_relaxed);
  }
};

}  // namespace forestvm::host
