// Executors run parallel loops on threads. One implementation is on oneTBB, one on std::thread (for forked
// processes, for ThreadSanitizer builds, which the distribution's oneTBB confuses, and for systems without
// TBB).
#pragma once

#include <cstdint>
#include <memory>

#include <forestvm/result.hpp>

#include "vm/host/function_ref.hpp"

namespace forestvm::host {

class Executor {
 public:
  virtual ~Executor() = default;

  /// Calls body(i) once for each i in [0, count), on any threads in any order; returns when all are done. May
  /// be called from many threads at once, and from inside a body. While the caller waits it runs nothing but
  /// bodies of this loop. `body` throws only what a loop in it throws. Throws std::bad_alloc or
  /// std::system_error where the system lacks memory or threads: then some bodies were not called.
  virtual void run(std::uint32_t count, FunctionRef<void(std::uint32_t)> body) const = 0;

  virtual unsigned threads() const = 0;
  virtual const char* name() const = 0;
};

/// Makes an executor of `threads` threads, the caller's included, from 2. It serves the process that made it:
/// a forked child has none of its threads and must leave it alone. Throws std::system_error if the system
/// does not start that many.
using MakeExecutor = std::unique_ptr<Executor>(unsigned threads);

MakeExecutor make_thread_executor;
MakeExecutor make_tbb_executor;  ///< Exists only in builds with oneTBB.
/// Makes an executor on oneTBB if the build has it and the process was not forked, otherwise on std::thread.
MakeExecutor make_executor;

/// Makes an executor that a forked child may use and destroy like the process that made it: the child's first
/// loop starts the threads again, or runs on the calling thread if the system starts none.
std::unique_ptr<Executor> make_forkable_executor(unsigned threads, MakeExecutor& make);

/// Returns the forkable executor of `threads` threads that all programs of the process share; it is never
/// destroyed. 0 means as many threads as the machine has. It is null for one thread: parallel loops then run
/// inline. Environment error if the system does not start that many threads.
Result<const Executor*> shared_executor(unsigned threads);

}  // namespace forestvm::host
