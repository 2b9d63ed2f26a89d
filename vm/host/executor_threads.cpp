// Parallel loops on a pool of std::thread. One loop has the pool at a time; a loop that finds it taken
// (another caller's, or the loop around it) runs on its own thread, which is always correct.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "vm/host/executor.hpp"

namespace forestvm::host {
namespace {

class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(unsigned threads) {
    try {
      for (unsigned i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
    } catch (...) {
      stop();
      throw;
    }
  }

  ~ThreadExecutor() override { stop(); }

  void run(std::uint32_t count, FunctionRef<void(std::uint32_t)> body) const override {
    // The pool is not held by a mutex, because the thread that holds it asks for it again when a body runs a loop.
    if (taken_.exchange(true, std::memory_order_acquire)) {
      for (std::uint32_t i = 0; i < count; ++i) body(i);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      body_ = body;
      count_ = count;
      next_.store(0, std::memory_order_relaxed);
      running_ = workers_.size();
      ++generation_;
    }
    wake_.notify_all();
    take(body, count);
    {
      std::unique_lock lock(mutex_);
      done_.wait(lock, [this] { return running_ == 0; });
    }
    taken_.store(false, std::memory_order_release);
  }

  unsigned threads() const override { return static_cast<unsigned>(workers_.size()) + 1; }
  const char* name() const override { return "std::thread"; }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void take(FunctionRef<void(std::uint32_t)> body, std::uint32_t count) const {
    for (;;) {
      const std::uint64_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= count) return;
      body(static_cast<std::uint32_t>(i));
    }
  }

  void work() const {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
      const auto body = *body_;
      const std::uint32_t count = count_;
      lock.unlock();
      take(body, count);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  mutable std::atomic<bool> taken_ = false;  ///< True while a loop has the pool.
  mutable std::mutex mutex_;
  mutable std::condition_variable wake_, done_;
  mutable std::optional<FunctionRef<void(std::uint32_t)>> body_;
  mutable std::uint32_t count_ = 0;
  mutable std::atomic<std::uint64_t> next_ = 0;
  mutable std::size_t running_ = 0;
  mutable std::uint64_t generation_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace

std::unique_ptr<Executor> make_thread_executor(unsigned threads) {
  return std::make_unique<ThreadExecutor>(threads);
}

}  // namespace forestvm::host
