// Tells AddressSanitizer and ThreadSanitizer of switches between the stacks of fibers. Without them, nothing.
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
#endif

namespace forestvm::kernels::emulator {

/// One fiber and the thread of the host that resumes it. Each leave comes right before a switch, each arrive
/// right after one. A fiber that is dropped before its end unwinds between begin_drop and end_drop.
class FiberSwitch {
 public:
#if defined(FVM_ADDRESS_SANITIZER)
  void set_stack(const void* stack, std::size_t size) {
    __asan_unpoison_memory_region(stack, size);  // what fibers before left, who never came to their ends
    fiber_stack_ = stack;
    fiber_size_ = size;
  }
  void leave_host() { __sanitizer_start_switch_fiber(&host_fake_, fiber_stack_, fiber_size_); }
  void arrive_in_fiber() { __sanitizer_finish_switch_fiber(fiber_fake_, &host_stack_, &host_size_); }
  void leave_fiber() { __sanitizer_start_switch_fiber(&fiber_fake_, host_stack_, host_size_); }
  void end_fiber() { __sanitizer_start_switch_fiber(nullptr, host_stack_, host_size_); }
  void arrive_in_host() { __sanitizer_finish_switch_fiber(host_fake_, nullptr, nullptr); }
  void begin_drop() {}
  void end_drop() {}

 private:
  const void* fiber_stack_ = nullptr;
  std::size_t fiber_size_ = 0;
  const void* host_stack_ = nullptr;
  std::size_t host_size_ = 0;
  void* host_fake_ = nullptr;
  void* fiber_fake_ = nullptr;
#elif defined(FVM_THREAD_SANITIZER)
  // The host alone switches, so that calls which return on the fiber's side began there. Inlined, because a
  // call that switches would begin on one side and return on the other.
  FiberSwitch() = default;
  ~FiberSwitch() {
    if (fiber_ != nullptr) __tsan_destroy_fiber(fiber_);
  }
  FiberSwitch(const FiberSwitch&) = delete;
  FiberSwitch& operator=(const FiberSwitch&) = delete;

  void set_stack(const void*, std::size_t) { fiber_ = __tsan_create_fiber(0); }
  __attribute__((always_inline)) void leave_host() {
    host_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_, 0);
  }
  void arrive_in_fiber() {}
  void leave_fiber() {}
  void end_fiber() {}
  __attribute__((always_inline)) void arrive_in_host() { __tsan_switch_to_fiber(host_, 0); }
  __attribute__((always_inline)) void begin_drop() { leave_host(); }
  __attribute__((always_inline)) void end_drop() { arrive_in_host(); }

 private:
  void* host_ = nullptr;
  void* fiber_ = nullptr;
#else
  void set_stack(const void*, std::size_t) {}
  void leave_host() {}
  void arrive_in_fiber() {}
  void leave_fiber() {}
  void end_fiber() {}
  void arrive_in_host() {}
  void begin_drop() {}
  void end_drop() {}
#endif
};

}  // namespace forestvm::kernels::emulator
