// How parallel loops get threads. One implementation on oneTBB, one on std::thread (for ThreadSanitizer
// builds, which the distribution's oneTBB confuses, and for systems without TBB).
#pragma once

#include <cstdint>
#include <memory>

#include "vm/host/function_ref.hpp"

namespace forestvm::host {

class Executor {
 public:
  virtual ~Executor() = default;

  /// Calls body(i) once for each i in [0, count), on any threads in any order; returns when all are done. May
  /// be called from many threads at once, and from inside a body. While the caller waits it runs nothing but
  /// bodies of this loop. `body` must not throw.
  virtual void run(std::uint32_t count, FunctionRef<void(std::uint32_t)> body) const = 0;

  virtual unsigned threads() const = 0;
  virtual const char* name() const = 0;
};

/// An executor of `threads` threads, the caller's included; 0: as many as the machine has. Null for 1: the
/// machine then runs parallel loops inline.
std::unique_ptr<Executor> make_executor(unsigned threads);

/// The one on std::thread, also where TBB is present.
std::unique_ptr<Executor> make_thread_executor(unsigned threads);

}  // namespace forestvm::host
