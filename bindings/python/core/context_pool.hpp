// A pool of contexts without locks: a call takes one, and gives it back when it is done.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include <forestvm/backend.hpp>

namespace forestvm::python {

/// Keeps the contexts that no call is using. A thread looks in its own slot first, so that threads that predict at the
/// same time rarely meet.
class ContextPool {
 public:
  /// A context while a call uses it.
  class Lease {
   public:
    Lease(ContextPool& pool, std::unique_ptr<Context> context) : pool_(&pool), context_(std::move(context)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { pool_->give_back(std::move(context_)); }

    Context& operator*() const { return *context_; }

   private:
    ContextPool* pool_;
    std::unique_ptr<Context> context_;
  };

  ContextPool() = default;
  ContextPool(const ContextPool&) = delete;
  ContextPool& operator=(const ContextPool&) = delete;
  ~ContextPool() {
    for (auto& slot : slots_) delete slot.load();
  }

  Lease take(const Predictor& predictor) {
    const std::size_t first = own_slot();
    for (std::size_t i = 0; i < kSlots; ++i) {
      std::atomic<Context*>& slot = slots_[(first + i) % kSlots];
      if (slot.load(std::memory_order_relaxed) == nullptr) continue;
      if (Context* const context = slot.exchange(nullptr, std::memory_order_acquire))
        return {*this, std::unique_ptr<Context>(context)};
    }
    return {*this, predictor.make_context()};
  }

 private:
  static constexpr std::size_t kSlots = 64;

  static std::size_t own_slot() {
    static std::atomic<std::size_t> next{0};
    thread_local const std::size_t slot = next.fetch_add(1, std::memory_order_relaxed) % kSlots;
    return slot;
  }

  void give_back(std::unique_ptr<Context> context) {
    const std::size_t first = own_slot();
    for (std::size_t i = 0; i < kSlots; ++i) {
      Context* empty = nullptr;
      if (slots_[(first + i) % kSlots].compare_exchange_strong(
              empty, context.get(), std::memory_order_release, std::memory_order_relaxed)) {
        static_cast<void>(context.release());
        return;
      }
    }
  }

  std::array<std::atomic<Context*>, kSlots> slots_{};
};

}  // namespace forestvm::python
