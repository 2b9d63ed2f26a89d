// A pool of workspaces without locks: a call takes one, and gives it back when it is done.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>

#include "bindings/c/rows.hpp"
#include "bindings/python/core/arrow_order.hpp"

namespace forestvm::python {

/// The memory that a call writes to besides its result.
struct Workspace {
  explicit Workspace(std::unique_ptr<Context> made) : context(std::move(made)) {}

  std::unique_ptr<Context> context;
  c_api::ColumnMemory columns;
  ArrowOrder arrow;
  std::vector<double> numbers;  ///< Rows that were given as Python's numbers.
};

/// Keeps the workspaces that no call is using. A thread looks in its own slot first, so that threads that predict at
/// the same time rarely meet.
class ContextPool {
 public:
  /// A workspace while a call uses it.
  class Lease {
   public:
    Lease(ContextPool& pool, std::unique_ptr<Workspace> workspace)
        : pool_(&pool), workspace_(std::move(workspace)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { pool_->give_back(std::move(workspace_)); }

    Context& operator*() const { return *workspace_->context; }
    Workspace& workspace() const { return *workspace_; }

   private:
    ContextPool* pool_;
    std::unique_ptr<Workspace> workspace_;
  };

  ContextPool() = default;
  ContextPool(const ContextPool&) = delete;
  ContextPool& operator=(const ContextPool&) = delete;
  ~ContextPool() { clear(); }

  /// Deletes all workspaces, which hold objects of Python. No call may be using one.
  void clear() {
    for (auto& slot : slots_) delete slot.exchange(nullptr);
  }

  Lease take(const Predictor& predictor) {
    const std::size_t first = own_slot();
    for (std::size_t i = 0; i < kSlots; ++i) {
      std::atomic<Workspace*>& slot = slots_[(first + i) % kSlots];
      if (slot.load(std::memory_order_relaxed) == nullptr) continue;
      if (Workspace* const workspace = slot.exchange(nullptr, std::memory_order_acquire))
        return {*this, std::unique_ptr<Workspace>(workspace)};
    }
    return {*this, std::make_unique<Workspace>(predictor.make_context())};
  }

 private:
  static constexpr std::size_t kSlots = 64;

  static std::size_t own_slot() {
    static std::atomic<std::size_t> next{0};
    thread_local const std::size_t slot = next.fetch_add(1, std::memory_order_relaxed) % kSlots;
    return slot;
  }

  void give_back(std::unique_ptr<Workspace> workspace) {
    const std::size_t first = own_slot();
    for (std::size_t i = 0; i < kSlots; ++i) {
      Workspace* empty = nullptr;
      if (slots_[(first + i) % kSlots].compare_exchange_strong(
              empty, workspace.get(), std::memory_order_release, std::memory_order_relaxed)) {
        static_cast<void>(workspace.release());
        return;
      }
    }
  }

  std::array<std::atomic<Workspace*>, kSlots> slots_{};
};

}  // namespace forestvm::python
