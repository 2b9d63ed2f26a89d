// Parallel loops on oneTBB, in an arena of the executor's own: oneTBB leaks some kilobytes for each arena in which
// a loop ran, and gives each thread that runs loops outside of any arena one of its own.
#include <pthread.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "vm/host/executor.hpp"

namespace forestvm::host {
namespace {

/// Lets oneTBB start `threads` threads even if there are fewer cores; otherwise it would start fewer threads, and
/// complain on standard error. oneTBB obeys the lowest of several limits, so this keeps a single one, the highest
/// that was asked for.
void raise_limit(unsigned threads) {
  static std::mutex mutex;
  static unsigned highest = 0;
  static const tbb::global_control* limit = nullptr;
  const std::lock_guard lock(mutex);
  if (threads <= std::max(highest, static_cast<unsigned>(tbb::info::default_concurrency()))) return;
  auto higher = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, threads);
  delete std::exchange(limit, higher.release());
  highest = threads;
}

/// True if this process is a child of one that ran loops on oneTBB.
constinit std::atomic<bool> is_child = false;

/// Releases what oneTBB keeps for a thread that is about to fork, until the thread runs its next loop.
/// Otherwise the child's thread would release it when it ends, or the process exits, and wait for locks that
/// another of the parent's threads held.
void leave_tbb() {
  if (is_child) return;
  try {
    tbb::task_scheduler_handle scheduler{tbb::attach{}};
    static_cast<void>(tbb::finalize(scheduler, std::nothrow));  // never ends oneTBB itself: there are arenas
  } catch (const std::bad_alloc&) {
    return;
  }
}

/// Makes forks call leave_tbb. Returns 0, or the error because of which they do not.
int on_fork() {
  static const int error = ::pthread_atfork(leave_tbb, nullptr, [] { is_child = true; });
  return error;
}

class TbbExecutor final : public Executor {
 public:
  explicit TbbExecutor(unsigned threads) : threads_(threads), arena_(static_cast<int>(threads)) {
    // oneTBB starts its threads when a loop needs them, and may then end the process, or never come back, if
    // there are none. So std::thread is first made to start as many, and then a first loop starts oneTBB's.
    make_thread_executor(threads);
    raise_limit(threads);
    auto nothing = [](std::uint32_t) {};
    run(threads, nothing);
  }

  void run(std::uint32_t count, FunctionRef<void(std::uint32_t)> body) const override {
    const InProgress loop(loops_);
    // Callers from outside the arena share its slots and wait for one. If so many loops run that most
    // callers would wait, a caller is faster alone. Loops inside of loops count too, but they are few beside
    // the callers.
    if (loop.number >= 2 * threads_) {
      for (std::uint32_t i = 0; i < count; ++i) body(i);
      return;
    }
    try {
      arena_.execute([&] { run_here(count, body); });
    } catch (const std::runtime_error& error) {  // oneTBB throws this if it cannot start a thread
      throw std::system_error(EAGAIN, std::generic_category(), error.what());
    }
  }

  unsigned threads() const override { return threads_; }
  const char* name() const override { return "TBB"; }

 private:
  /// Counts a loop as long as it runs.
  struct InProgress {
    explicit InProgress(std::atomic<unsigned>& all) : number(all.fetch_add(1)), loops(&all) {}
    InProgress(const InProgress&) = delete;
    InProgress& operator=(const InProgress&) = delete;
    ~InProgress() { loops->fetch_sub(1); }

    unsigned number;  ///< Number of loops that were running before this one.
    std::atomic<unsigned>* loops;
  };

  static void run_here(std::uint32_t count, FunctionRef<void(std::uint32_t)> body) {
    const auto loop = [&] {
      tbb::parallel_for(tbb::blocked_range<std::uint32_t>(0, count),
                        [&](const tbb::blocked_range<std::uint32_t>& part) {
                          for (std::uint32_t i = part.begin(); i != part.end(); ++i) body(i);
                        });
    };
    // The loop is isolated, because a thread that waits for it must not take up the caller's own work, which might
    // be another prediction with the same thread's context.
    tbb::this_task_arena::isolate(loop);
  }

  unsigned threads_;
  mutable tbb::task_arena arena_;
  mutable std::atomic<unsigned> loops_ = 0;
};

}  // namespace

std::unique_ptr<Executor> make_tbb_executor(unsigned threads) {
  if (const int error = on_fork(); error != 0) throw std::system_error(error, std::generic_category());
  return std::make_unique<TbbExecutor>(threads);
}

}  // namespace forestvm::host
