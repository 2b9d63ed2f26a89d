// Scratch memory for the threads of one call, divided into slots of equal size, one for each thread that works at
// once. In: memory. Out: a slot for each thread that asks, until it gives the slot back.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace forestvm::host {

class ScratchSlots {
 public:
  static constexpr unsigned kMaxSlots = 64;

  /// Divides `memory` into `count` slots of `bytes` bytes each, at least one and at most kMaxSlots.
  ScratchSlots(std::byte* memory, std::size_t bytes, unsigned count)
      : memory_(memory), bytes_(bytes), free_(~std::uint64_t{0} >> (kMaxSlots - count)) {}

  /// A slot that a thread has taken. The constructor waits for a slot if all are taken. A thread that has a slot must
  /// not ask for another, because threads that wait for each other's slots would never go on.
  class Slot {
   public:
    explicit Slot(ScratchSlots& slots) : slots_(&slots), bit_(slots.take()) {}
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot() { slots_->free_.fetch_or(bit_, std::memory_order_release); }

    std::byte* memory() const {
      return slots_->memory_ + static_cast<unsigned>(std::countr_zero(bit_)) * slots_->bytes_;
    }

   private:
    ScratchSlots* slots_;
    std::uint64_t bit_;
  };

 private:
  std::uint64_t take() {
    std::uint64_t free = free_.load(std::memory_order_relaxed);
    for (;;) {
      if (free == 0) {
        std::this_thread::yield();
        free = free_.load(std::memory_order_relaxed);
      } else if (const std::uint64_t bit = free & (~free + 1); free_.compare_exchange_weak(
                     free, free ^ bit, std::memory_order_acquire, std::memory_order_relaxed)) {
        return bit;
      }
    }
  }

  std::byte* memory_;
  std::size_t bytes_;
  std::atomic<std::uint64_t> free_;
};

}  // namespace forestvm::host
