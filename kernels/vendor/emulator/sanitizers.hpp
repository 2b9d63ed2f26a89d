// Tells AddressSanitizer and ThreadSanitizer of switches between the stacks of fibers. Does nothing in builds
// without them.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define FVM_ADDRESS_SANITIZER
#elif defined(__SANITIZE_THREAD__)
#define FVM_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FVM_ADDRESS_SANITIZER
#elif __has_feature(thread_sanitizer)
#define FVM_THREAD_SANITIZER
#endif
#endif

#if defined(FVM_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#elif defined(FVM_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>

#include <vector>
#endif

namespace forestvm::kernels::emulator {

#if defined(FVM_THREAD_SANITIZER)
/// ThreadSanitizer's fibers. It takes long to make one, so each is used again and again, but only a limited number
/// of times, because a fiber keeps calls that never returned.
class SanitizerFibers {
 public:
  struct Used {
    void* fiber = nullptr;
    unsigned times = 0;
  };

  static SanitizerFibers& of_this_thread() {
    thread_local SanitizerFibers fibers;
    return fibers;
  }

  SanitizerFibers() = default;
  ~SanitizerFibers() {
    for (const Used& used : spare_) __tsan_destroy_fiber(used.fiber);
  }
  SanitizerFibers(const SanitizerFibers&) = delete;
  SanitizerFibers& operator=(const SanitizerFibers&) = delete;

  Used take() {
    if (spare_.empty()) return {__tsan_create_fiber(0), 0};
    const Used used = spare_.back();
    spare_.pop_back();
    return used;
  }
  void give_back(Used used) {
    if (++used.times == kMaxTimes)
      __tsan_destroy_fiber(used.fiber);
    else
      spare_.push_back(used);
  }

 private:
  static constexpr unsigned kMaxTimes = 1000;
  std::vector<Used> spare_;
};
#endif

/// Forgets what sanitizers know about memory that held stacks, before it is used again.
#if defined(FVM_ADDRESS_SANITIZER)
inline void forget_stacks(const void* memory, std::size_t bytes) {
  __asan_unpoison_memory_region(memory, bytes);
}
#else
inline void forget_stacks(const void*, std::size_t) {}
#endif

/// One fiber and the thread of the host that resumes it. Each leave comes right before a switch, each arrive
/// right after one. Between begin_upkeep and end_upkeep the fiber is made, or dropped before its end.
class FiberSwitch {
 public:
#if defined(FVM_ADDRESS_SANITIZER)
  void set_stack(const void* stack, std::size_t size) {
    forget_stacks(stack, size);
    fiber_stack_ = stack;
    fiber_size_ = size;
  }
  void leave_host() { __sanitizer_start_switch_fiber(&host_fake_, fiber_stack_, fiber_size_); }
  void arrive_in_fiber() { __sanitizer_finish_switch_fiber(fiber_fake_, &host_stack_, &host_size_); }
  void leave_fiber() { __sanitizer_start_switch_fiber(&fiber_fake_, host_stack_, host_size_); }
  void end_fiber() { __sanitizer_start_switch_fiber(nullptr, host_stack_, host_size_); }
  void arrive_in_host() { __sanitizer_finish_switch_fiber(host_fake_, nullptr, nullptr); }
  void begin_upkeep() {}
  void end_upkeep() {}

 private:
  const void* fiber_stack_ = nullptr;
  std::size_t fiber_size_ = 0;
  const void* host_stack_ = nullptr;
  std::size_t host_size_ = 0;
  void* host_fake_ = nullptr;
  void* fiber_fake_ = nullptr;
#elif defined(FVM_THREAD_SANITIZER)
  // The host alone switches, so that calls which return on the fiber's side began there. The functions that switch
  // are inlined, because a call of them would begin on one side and return on the other.
  FiberSwitch() = default;
  ~FiberSwitch() {
    if (used_.fiber != nullptr) SanitizerFibers::of_this_thread().give_back(used_);
  }
  FiberSwitch(const FiberSwitch&) = delete;
  FiberSwitch& operator=(const FiberSwitch&) = delete;

  void set_stack(const void*, std::size_t) { used_ = SanitizerFibers::of_this_thread().take(); }
  __attribute__((always_inline)) void leave_host() {
    host_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(used_.fiber, 0);
  }
  void arrive_in_fiber() {}
  void leave_fiber() {}
  void end_fiber() {}
  __attribute__((always_inline)) void arrive_in_host() { __tsan_switch_to_fiber(host_, 0); }
  __attribute__((always_inline)) void begin_upkeep() { leave_host(); }
  __attribute__((always_inline)) void end_upkeep() { arrive_in_host(); }

 private:
  void* host_ = nullptr;
  SanitizerFibers::Used used_;
#else
  void set_stack(const void*, std::size_t) {}
  void leave_host() {}
  void arrive_in_fiber() {}
  void leave_fiber() {}
  void end_fiber() {}
  void arrive_in_host() {}
  void begin_upkeep() {}
  void end_upkeep() {}
#endif
};

}  // namespace forestvm::kernels::emulator
