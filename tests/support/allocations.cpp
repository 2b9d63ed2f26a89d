// See allocations.hpp.
#include "support/allocations.hpp"

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "support/memory.hpp"

namespace forestvm::support {
namespace {

/// Counts down to a failure.
class Schedule {
 public:
  void start(std::int64_t more, Failing failing) {
    lasting_ = failing == Failing::FromThenOn;
    failed_ = false;
    left_ = more;
  }
  bool stop() {
    left_ = -1;
    return failed_.exchange(false);
  }
  bool fails() {
    std::int64_t left = left_;
    while (left > 0 && !left_.compare_exchange_weak(left, left - 1)) {
    }
    if (left != 0 || (!lasting_ && !left_.compare_exchange_strong(left, -1))) return false;
    failed_ = true;
    return true;
  }

 private:
  std::atomic<std::int64_t> left_ = -1;  ///< allocations that succeed before the failure; -1: none fails
  std::atomic<bool> lasting_ = false, failed_ = false;
};

constinit Schedule allocation_failures, thread_failures;
constinit std::atomic<std::uint64_t> allocations = 0;
constinit std::atomic<std::uint64_t> largest = 0;

thread_local bool in_dlopen = false;

/// Returns whether an allocation may succeed.
bool allowed(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  std::uint64_t most = largest.load(std::memory_order_relaxed);
  while (most < size && !largest.compare_exchange_weak(most, size, std::memory_order_relaxed)) {
  }
  if (in_dlopen || !allocation_failures.fails()) return true;
  errno = ENOMEM;
  return false;
}

}  // namespace

std::uint64_t allocation_count() { return allocations.load(); }
std::uint64_t take_largest_allocation() { return largest.exchange(0); }
void fail_allocations_after(std::int64_t more, Failing failing) { allocation_failures.start(more, failing); }
void fail_threads_after(std::int64_t more, Failing failing) { thread_failures.start(more, failing); }
bool stop_failing() {
  const bool allocation = allocation_failures.stop(), thread = thread_failures.stop();
  return allocation || thread;
}

}  // namespace forestvm::support

using forestvm::support::allowed;

#if FVM_SANITIZED

namespace {

void* memory_or_null(std::size_t size, std::size_t alignment) {
  if (!allowed(size)) return nullptr;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
}

void* memory(std::size_t size, std::size_t alignment) {
  void* found = memory_or_null(size, alignment);
  if (found == nullptr) throw std::bad_alloc();
  return found;
}

}  // namespace

void* operator new(std::size_t size) { return memory(size, alignof(std::max_align_t)); }
void* operator new[](std::size_t size) { return memory(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return memory(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return memory(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {  // std::stable_sort calls it
  return memory_or_null(size, alignof(std::max_align_t));
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return memory_or_null(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return memory_or_null(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return memory_or_null(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#else

#include <dlfcn.h>

#define FVM_REPLACES extern "C" __attribute__((visibility("default")))

// The C library's functions, under the names by which their replacements may call them.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's names are reserved

FVM_REPLACES void* malloc(std::size_t size) { return allowed(size) ? __libc_malloc(size) : nullptr; }
FVM_REPLACES void* calloc(std::size_t count, std::size_t size) {
  return allowed(count * size) ? __libc_calloc(count, size) : nullptr;
}
FVM_REPLACES void* realloc(void* memory, std::size_t size) {
  return allowed(size) ? __libc_realloc(memory, size) : nullptr;
}
FVM_REPLACES void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return allowed(size) ? __libc_memalign(alignment, size) : nullptr;
}
FVM_REPLACES int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = aligned_alloc(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}

FVM_REPLACES int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                                void* argument) {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const create = reinterpret_cast<Create*>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (forestvm::support::thread_failures.fails()) return EAGAIN;
  return create(thread, attributes, start, argument);
}

/// Suspends failures in dlopen: glibc 2.36 crashes if dlopen fails and has no memory for its message.
FVM_REPLACES void* dlopen(const char* path, int mode) {
  using Open = void*(const char*, int);
  static auto* const open = reinterpret_cast<Open*>(::dlsym(RTLD_NEXT, "dlopen"));
  forestvm::support::in_dlopen = true;
  void* const library = open(path, mode);
  forestvm::support::in_dlopen = false;
  return library;
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)

#endif
