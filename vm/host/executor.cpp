// Executors of a process and of the children that it forks. A child has the memory of its parent, but none of
// its other threads: workers are gone, and locks that they held stay locked. So a child leaves its parent's
// executors as they are and makes new ones, on std::thread: oneTBB cannot be started again.
#include "vm/host/executor.hpp"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <forestvm/backend.hpp>
#include <forestvm/internal/formatted.hpp>

namespace forestvm {
namespace {

thread_local unsigned limit_of_thread = 0;

}  // namespace

void limit_threads(unsigned limit) { limit_of_thread = limit; }
unsigned thread_limit() { return limit_of_thread; }

}  // namespace forestvm

namespace forestvm::host {
namespace {

/// The number of forks between this process and the one that loaded the library. It is atomic because nothing
/// here takes a lock: a thread that the child does not have could hold it.
constinit std::atomic<unsigned> forks = 0;

/// The error because of which forks are not counted; 0 if they are.
const int fork_error = ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });

/// The threads of one process.
struct Team {
  explicit Team(std::unique_ptr<Executor> made, const Team* of_parent = nullptr)
      : executor(std::move(made)), process(forks), parents(of_parent) {}

  std::unique_ptr<Executor> executor;
  unsigned process;  ///< Value of `forks` in the process that made the team.
  /// The parent process's team, never used or destroyed; null in the process that made the executor.
  const Team* parents;
};

/// Makes loops inside of a loop's body run on the body's thread while it exists.
struct LimitOfLoops {
  LimitOfLoops() { limit_threads(1); }
  LimitOfLoops(const LimitOfLoops&) = delete;
  LimitOfLoops& operator=(const LimitOfLoops&) = delete;
  ~LimitOfLoops() { limit_threads(outside); }

  unsigned outside = thread_limit();
};

class ForkableExecutor final : public Executor {
 public:
  ForkableExecutor(unsigned threads, MakeExecutor& make)
      : threads_(threads), team_(std::make_unique<Team>(make(threads)).release()) {}

  ~ForkableExecutor() override {
    const Team* const team = team_.load();
    if (team->process == forks) delete team;
  }

  void run(std::uint32_t count, FunctionRef<void(std::uint32_t)> body) const override {
    const unsigned limit = thread_limit();
    const Executor* const own = limit == 1 ? nullptr : executor();
    if (own == nullptr) {
      for (std::uint32_t i = 0; i < count; ++i) body(i);
    } else if (limit != 0 && limit < threads_) {
      run_limited(*own, limit, count, body);
    } else {
      own->run(count, body);
    }
  }

  unsigned threads() const override { return threads_; }
  const char* name() const override {
    const Executor* const own = executor();
    return own == nullptr ? "no worker" : own->name();
  }

 private:
  /// Runs a loop as `limit` iterations of another loop, so that no more threads take part.
  static void run_limited(const Executor& own, unsigned limit, std::uint32_t count,
                          FunctionRef<void(std::uint32_t)> body) {
    std::atomic<std::uint64_t> next = 0;
    auto share = [&](std::uint32_t) {
      const LimitOfLoops alone;
      for (;;) {
        const std::uint64_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= count) return;
        body(static_cast<std::uint32_t>(i));
      }
    };
    own.run(limit, share);
  }

  /// Returns this process's executor; null if the system starts no threads.
  const Executor* executor() const {
    const Team* const team = team_.load(std::memory_order_acquire);
    return team->process == forks.load(std::memory_order_relaxed) ? team->executor.get() : restart(team);
  }

  const Executor* restart(const Team* parents) const {
    try {
      auto mine = std::make_unique<Team>(make_thread_executor(threads_), parents);
      const Team* found = parents;
      if (!team_.compare_exchange_strong(found, mine.get())) return found->executor.get();
      return mine.release()->executor.get();
    } catch (const std::system_error&) {
      return nullptr;
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  unsigned threads_;
  mutable std::atomic<const Team*> team_;
};

/// Returns the number of processors that this process may run on.
unsigned machine_threads() {
  cpu_set_t mine;
  if (::sched_getaffinity(0, sizeof mine, &mine) == 0) return static_cast<unsigned>(CPU_COUNT(&mine));
  return std::thread::hardware_concurrency();  // more than 1024 processors do not fit a cpu_set_t
}

struct SharedExecutor {
  SharedExecutor(unsigned threads, const SharedExecutor* others)
      : executor(threads, make_executor), next(others) {}

  ForkableExecutor executor;
  const SharedExecutor* next;
};
constinit std::atomic<const SharedExecutor*> shared_executors = nullptr;

const Executor* find_shared(const SharedExecutor* first, unsigned threads) {
  for (; first != nullptr; first = first->next)
    if (first->executor.threads() == threads) return &first->executor;
  return nullptr;
}

}  // namespace

[[gnu::cold]] std::unique_ptr<Executor> make_executor(unsigned threads) {
#ifdef FORESTVM_TBB
  if (forks == 0) return make_tbb_executor(threads);
#endif
  return make_thread_executor(threads);
}

[[gnu::cold]] std::unique_ptr<Executor> make_forkable_executor(unsigned threads, MakeExecutor& make) {
  return std::make_unique<ForkableExecutor>(threads, make);
}

[[gnu::cold]] Result<const Executor*> shared_executor(unsigned threads) {
  if (threads == 0) threads = machine_threads();
  if (threads <= 1) return nullptr;
  const auto cannot_start = [threads](const std::string& why) {
    return fail(ErrorCode::Environment, formatted("cannot start {} threads: {}", threads, why));
  };
  const SharedExecutor* first = shared_executors.load(std::memory_order_acquire);
  if (const Executor* const found = find_shared(first, threads)) return found;
  if (fork_error != 0) return cannot_start(std::generic_category().message(fork_error));
  try {
    auto made = std::make_unique<SharedExecutor>(threads, first);
    while (!shared_executors.compare_exchange_weak(first, made.get())) {
      if (const Executor* const found = find_shared(first, threads)) return found;
      made->next = first;
    }
    return &made.release()->executor;
  } catch (const std::system_error& error) {
    return cannot_start(error.what());
  }
}

}  // namespace forestvm::host
