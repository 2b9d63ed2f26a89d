// Tells AddressSanitizer of switches between the stacks of fibers. Without it, nothing.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define FVM_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FVM_ADDRESS_SANITIZER
#endif
#endif

#if defined(FVM_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace forestvm::kernels::emulator {

/// One fiber and the thread of the host that resumes it. Each leave comes right before a switch, each arrive
/// right after one.
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

 private:
  const void* fiber_stack_ = nullptr;
  std::size_t fiber_size_ = 0;
  const void* host_stack_ = nullptr;
  std::size_t host_size_ = 0;
  void* host_fake_ = nullptr;
  void* fiber_fake_ = nullptr;
#else
  void set_stack(const void*, std::size_t) {}
  void leave_host() {}
  void arrive_in_fiber() {}
  void leave_fiber() {}
  void end_fiber() {}
  void arrive_in_host() {}
#endif
};

}  // namespace forestvm::kernels::emulator
