// Parallel loops on oneTBB. With a given number of threads the loop runs in an arena of that size; with 0 it
// runs in whatever arena the caller is in.
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <optional>

#include "vm/host/executor.hpp"

namespace forestvm::host {
namespace {

class TbbExecutor final : public Executor {
 public:
  explicit TbbExecutor(unsigned threads) : own_arena_(threads != 0), arena_(arena_size(threads)) {
    // More threads than cores were asked for: TBB would make fewer, and complain on standard error.
    if (threads > static_cast<unsigned>(tbb::info::default_concurrency()))
      more_.emplace(tbb::global_control::max_allowed_parallelism, threads);
  }

  void run(std::uint32_t count, FunctionRef<void(std::uint32_t)> body) const override {
    const auto loop = [&] {
      tbb::parallel_for(tbb::blocked_range<std::uint32_t>(0, count),
                        [&](const tbb::blocked_range<std::uint32_t>& part) {
                          for (std::uint32_t i = part.begin(); i != part.end(); ++i) body(i);
                        });
    };
    // Isolated: a thread that waits for this loop must not take up the caller's own work, which might be
    // another prediction with the same thread's context.
    const auto isolated = [&] { tbb::this_task_arena::isolate(loop); };
    if (own_arena_)
      arena_.execute(isolated);
    else
      isolated();
  }

  unsigned threads() const override {
    return static_cast<unsigned>(own_arena_ ? arena_.max_concurrency()
                                            : tbb::this_task_arena::max_concurrency());
  }
  const char* name() const override { return "TBB"; }

 private:
  static int arena_size(unsigned threads) {
    return threads == 0 ? tbb::task_arena::automatic : static_cast<int>(threads);
  }

  bool own_arena_;
  std::optional<tbb::global_control> more_;
  mutable tbb::task_arena arena_;
};

}  // namespace

std::unique_ptr<Executor> make_executor(unsigned threads) {
  if (threads == 1) return nullptr;
  return std::make_unique<TbbExecutor>(threads);
}

}  // namespace forestvm::host
