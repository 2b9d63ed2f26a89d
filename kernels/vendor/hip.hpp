// Device for HIP, see device.hpp. It is made of the compiler's builtins, because neither HIP's headers nor its
// libraries for devices are there for every GPU that a compiler knows. Lanes of a wavefront run in step, so that
// shuffles need no mask.
#pragma once

#include <cstddef>
#include <cstdint>

#define FVM_DEVICE __device__ inline
// Kernels do not call all functions of their headers, of which clang would warn.
#define FVM_DEVICE_CALL __device__ __attribute__((noinline, unused)) static
#define FVM_DEVICE_COLD __device__ __attribute__((noinline))
#define FVM_UNROLL(times) _Pragma(FVM_TEXT(unroll times))
#define FVM_NO_UNROLL _Pragma("unroll 1")
#define FVM_TEXT(words) #words
#define FVM_KERNEL(threads) \
  extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(1, threads))) FVM_REGISTERS
#ifdef __gfx90a__  // compilers take accumulation registers besides: 128 in all leave room for another block
#define FVM_REGISTERS __attribute__((amdgpu_num_vgpr(120)))
#else
#define FVM_REGISTERS
#endif
#define FVM_KERNEL_ARGUMENT

#include <forestvm/core/forest_data.hpp>

/// Address spaces of AMD's compiler: pointers of 32 and of 64 bits.
#define FVM_SHARED __attribute__((address_space(3)))
#define FVM_GLOBAL __attribute__((address_space(1)))

namespace forestvm::kernels {

extern __shared__ __attribute__((aligned(16))) std::byte shared_memory[];

struct Device {
  static constexpr unsigned kMaxThreads = 512;
  static constexpr unsigned kDeliveredTrees = 4;
  static constexpr bool kHandsOverCopies = true;
  static constexpr bool kCopiesAsync = false;

  /// Returns the argument where the launch put it: taking the parameter's address would copy it for each thread.
  template <class T>
  FVM_DEVICE static const T& argument(const T&) {
    return *(const T*)__builtin_amdgcn_kernarg_segment_ptr();
  }

  FVM_DEVICE static unsigned index(unsigned dimension) {
    return dimension < 3 ? component(__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
                                     __builtin_amdgcn_workgroup_id_z(), dimension)
                         : component(__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
                                     __builtin_amdgcn_workitem_id_z(), dimension - 3);
  }
  FVM_DEVICE static unsigned extent(unsigned dimension) {
    const unsigned of_block =
        component(__builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
                  __builtin_amdgcn_workgroup_size_z(), dimension % 3);
    if (dimension >= 3) return of_block;
    return component(__builtin_amdgcn_grid_size_x(), __builtin_amdgcn_grid_size_y(),
                     __builtin_amdgcn_grid_size_z(), dimension) /
           of_block;
  }
  FVM_DEVICE static std::byte* shared() { return shared_memory; }

  FVM_DEVICE static std::uint32_t shared_address(const void* pointer) {
    return static_cast<std::uint32_t>((std::uintptr_t)(const FVM_SHARED std::byte*)pointer);
  }
  template <class T>
  FVM_DEVICE static T load_shared(std::uint32_t address) {
    T value;
    __builtin_memcpy(&value, (const FVM_SHARED void*)(std::uintptr_t)address, sizeof value);
    return value;
  }
  template <class T>
  FVM_DEVICE static T load_global(const T* pointer) {
    T value;
    __builtin_memcpy(&value, (const FVM_GLOBAL T*)pointer, sizeof value);
    return value;
  }
  template <class T>
  FVM_DEVICE static const T* in_global(const T* pointer) {
    return (const T*)(const FVM_GLOBAL T*)pointer;
  }
  template <class T>
  FVM_DEVICE static T kept(T value) {
    return value;
  }
  FVM_DEVICE static std::uint32_t kept_after(std::uint32_t number, float&) { return number; }
  FVM_DEVICE static std::uint32_t branch(float x, float threshold, std::uint32_t word, std::uint32_t left,
                                         std::uint32_t right) {
    return (x < threshold) | ((x != x) & ((word & kMissingLeft) != 0)) ? left : right;
  }
  template <std::uint32_t mask, std::uint32_t step>
  FVM_DEVICE static std::uint32_t child(std::uint32_t at, float x, float threshold, std::uint32_t word) {
    const std::uint32_t steps = word & mask;
    const bool right = (steps != 0) & (branch(x, threshold, word, 0, 1) != 0);
    return at + steps * step + (right ? step : 0);
  }
  FVM_DEVICE static std::uint32_t sibling(std::uint32_t left, float x, float threshold, std::uint32_t word) {
    const bool right = ((word & kLeaf) == 0) & (branch(x, threshold, word, 0, 1) != 0);
    return left + (right ? 1 : 0);
  }
  FVM_DEVICE static std::uint32_t below(std::uint32_t at, std::uint32_t left, std::uint32_t more, float x,
                                        float threshold, std::uint32_t word) {
    return 2 * at + branch(x, threshold, word, left, left + more);
  }
  FVM_DEVICE static std::uint32_t below(std::uint32_t at, std::uint32_t left, std::uint32_t more,
                                        std::uint32_t code, std::uint32_t word) {
    return 2 * at + (code > word ? left + more : left);
  }

  FVM_DEVICE static void sync(std::uint32_t) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }

#if __has_builtin(__builtin_amdgcn_wavefrontsize)
  FVM_DEVICE static unsigned warp_size() { return __builtin_amdgcn_wavefrontsize(); }
#else
  FVM_DEVICE static unsigned warp_size() { return __AMDGCN_WAVEFRONT_SIZE; }
#endif

  template <class T>
  FVM_DEVICE static T shuffle_down(T value, unsigned by, std::uint32_t) {
    static_assert(sizeof(T) % sizeof(int) == 0);
    const unsigned lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
    int words[sizeof(T) / sizeof(int)];
    __builtin_memcpy(words, &value, sizeof value);
    for (int& word : words) word = __builtin_amdgcn_ds_bpermute(static_cast<int>((lane + by) * 4), word);
    __builtin_memcpy(&value, words, sizeof value);
    return value;
  }

  /// Copies at once, so that wait_copies() has nothing to wait for.
  FVM_DEVICE static void copy_async(std::byte* to, const std::byte* from, unsigned bytes) {
    if (bytes == 16)
      copy<16>(to, from);
    else if (bytes == 8)
      copy<8>(to, from);
    else
      copy<4>(to, from);
  }
  FVM_DEVICE static void wait_copies() {}

  FVM_DEVICE static constexpr bool has_bulk_copies() { return false; }
  FVM_DEVICE static void make_bulk_barrier(std::uint32_t) {}
  FVM_DEVICE static void expect_bulk(std::uint32_t, std::uint32_t) {}
  FVM_DEVICE static void copy_bulk(std::uint32_t, const std::byte*, std::uint32_t, std::uint32_t) {}
  FVM_DEVICE static void wait_bulk(std::uint32_t, std::uint32_t, std::uint32_t) {}

  FVM_DEVICE static void fence() { __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent"); }

  template <class T>
  FVM_DEVICE static T fetch_add(T& sum, T more) {
    return __hip_atomic_fetch_add(&sum, more, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }

 private:
  FVM_DEVICE static unsigned component(unsigned x, unsigned y, unsigned z, unsigned which) {
    return which == 0 ? x : which == 1 ? y : z;
  }
  template <unsigned bytes>
  FVM_DEVICE static void copy(std::byte* to, const std::byte* from) {
    __builtin_memcpy(__builtin_assume_aligned(to, bytes), __builtin_assume_aligned(from, bytes), bytes);
  }
};

}  // namespace forestvm::kernels
