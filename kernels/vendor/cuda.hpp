// Device for CUDA, see device.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <forestvm/core/forest_data.hpp>

#define FVM_DEVICE __device__ inline
#define FVM_DEVICE_CALL __device__ __noinline__ static
#define FVM_DEVICE_COLD __device__ __noinline__
#define FVM_UNROLL(times) _Pragma(FVM_TEXT(unroll times))
#define FVM_NO_UNROLL _Pragma("unroll 1")
#define FVM_TEXT(words) #words
#define FVM_KERNEL(threads) extern "C" __global__ __launch_bounds__(threads, 1)
#define FVM_KERNEL_ARGUMENT __grid_constant__

namespace forestvm::kernels {

extern __shared__ float4 shared_memory[];

struct Device {
  static constexpr unsigned kMaxThreads = 1024;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000  // otherwise compilers for 10.0 and 12.0 spill registers
  static constexpr unsigned kDeliveredTrees = 1;
  static constexpr bool kHandsOverCopies = false;
#else
  static constexpr unsigned kDeliveredTrees = 4;
  static constexpr bool kHandsOverCopies = true;
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  static constexpr bool kCopiesAsync = true;
#else
  static constexpr bool kCopiesAsync = false;
#endif

  template <class T>
  FVM_DEVICE static const T& argument(const T& argument) {
    return argument;
  }

  /// Reads a thread's index by volatile assembly, so that it is read where it is needed: compilers would otherwise read
  /// all three once, and keep them in registers.
  FVM_DEVICE static unsigned index(unsigned dimension) {
    unsigned index;
    if (dimension < 3)
      index = component(blockIdx.x, blockIdx.y, blockIdx.z, dimension);
    else if (dimension == 3)
      asm volatile("mov.u32 %0, %%tid.x;" : "=r"(index));
    else if (dimension == 4)
      asm volatile("mov.u32 %0, %%tid.y;" : "=r"(index));
    else
      asm volatile("mov.u32 %0, %%tid.z;" : "=r"(index));
    return index;
  }
  FVM_DEVICE static unsigned extent(unsigned dimension) {
    const dim3 of = dimension < 3 ? gridDim : blockDim;
    return component(of.x, of.y, of.z, dimension < 3 ? dimension : dimension - 3);
  }
  FVM_DEVICE static std::byte* shared() { return reinterpret_cast<std::byte*>(shared_memory); }

  FVM_DEVICE static std::uint32_t shared_address(const void* pointer) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
  }
  /// Uses volatile assembly, so that no load passes a barrier.
  template <class T>
  FVM_DEVICE static T load_shared(std::uint32_t address) {
    if constexpr (sizeof(T) == 1) {
      std::uint32_t byte;
      asm volatile("ld.shared.u8 %0, [%1];" : "=r"(byte) : "r"(address));
      return static_cast<T>(byte);
    } else if constexpr (sizeof(T) == 4) {
      std::uint32_t word;
      asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address));
      return __builtin_bit_cast(T, word);
    } else if constexpr (sizeof(T) == 8) {
      static_assert(alignof(T) == 8);
      std::uint64_t words;
      asm volatile("ld.shared.b64 %0, [%1];" : "=l"(words) : "r"(address));
      return __builtin_bit_cast(T, words);
    } else if constexpr (sizeof(T) == 12) {
      return __builtin_bit_cast(
          T, uint3{load_shared<std::uint32_t>(address), load_shared<std::uint32_t>(address + 4),
                   load_shared<std::uint32_t>(address + 8)});
    } else {
      static_assert(sizeof(T) == 16 && alignof(T) == 16);
      uint4 words;
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                   : "r"(address));
      return __builtin_bit_cast(T, words);
    }
  }
  /// Uses assembly, because compilers load 8 bytes as two words for some GPUs.
  template <class T>
  FVM_DEVICE static T load_global(const T* pointer) {
    const std::size_t address = __cvta_generic_to_global(pointer);
    if constexpr (sizeof(T) == 4) {
      std::uint32_t word;
      asm("ld.global.b32 %0, [%1];" : "=r"(word) : "l"(address));
      return __builtin_bit_cast(T, word);
    } else if constexpr (sizeof(T) == 8) {
      static_assert(alignof(T) == 8);
      std::uint64_t words;
      asm("ld.global.b64 %0, [%1];" : "=l"(words) : "l"(address));
      return __builtin_bit_cast(T, words);
    } else if constexpr (sizeof(T) == 12) {
      return *in_global(pointer);
    } else {
      static_assert(sizeof(T) == 16 && alignof(T) == 16);
      uint4 words;
      asm("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
          : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
          : "l"(address));
      return __builtin_bit_cast(T, words);
    }
  }

  /// Makes loads through the result loads of global memory.
  template <class T>
  FVM_DEVICE static const T* in_global(const T* pointer) {
    __builtin_assume(__isGlobal(pointer));
    return pointer;
  }

  FVM_DEVICE static std::uint32_t kept(std::uint32_t number) {
    asm("" : "+r"(number));
    return number;
  }
  template <class T>
  FVM_DEVICE static const T* kept(const T* pointer) {
    asm("" : "+l"(pointer));
    return pointer;
  }

  FVM_DEVICE static std::uint32_t kept_after(std::uint32_t number, float& before) {
    asm("" : "+r"(number), "+f"(before));
    return number;
  }

  /// Uses assembly, because compilers spend up to 4 instructions more.
  FVM_DEVICE static std::uint32_t branch(float x, float threshold, std::uint32_t word, std::uint32_t left,
                                         std::uint32_t right) {
    std::uint32_t taken;
    asm("{ .reg .pred missing_right, unless_below, to_right; .reg .b32 flag;\n\t"
        "and.b32 flag, %3, %6;\n\t"
        "setp.eq.u32 missing_right, flag, 0;\n\t"
        "setp.geu.and.f32 unless_below, %1, %2, missing_right;\n\t"
        "setp.ge.or.f32 to_right, %1, %2, unless_below;\n\t"
        "selp.b32 %0, %5, %4, to_right; }"
        : "=r"(taken)
        : "f"(x), "f"(threshold), "r"(word), "r"(left), "r"(right), "n"(kMissingLeft));
    return taken;
  }
  /// Uses assembly, so that only the last addition waits for the comparison.
  FVM_DEVICE static std::uint32_t below(std::uint32_t at, std::uint32_t left, std::uint32_t more, float x,
                                        float threshold, std::uint32_t word) {
    asm("{ .reg .pred missing_right, to_right; .reg .b32 flag;\n\t"
        "and.b32 flag, %5, %6;\n\t"
        "setp.eq.u32 missing_right, flag, 0;\n\t"
        "setp.geu.and.f32 to_right, %3, %4, missing_right;\n\t"
        "setp.ge.or.f32 to_right, %3, %4, to_right;\n\t"
        "mad.lo.u32 %0, %0, 2, %1;\n\t"
        "@to_right add.u32 %0, %0, %2; }"
        : "+r"(at)
        : "r"(left), "r"(more), "f"(x), "f"(threshold), "r"(word), "n"(kMissingLeft));
    return at;
  }
  FVM_DEVICE static std::uint32_t below(std::uint32_t at, std::uint32_t left, std::uint32_t more,
                                        std::uint32_t code, std::uint32_t word) {
    asm("{ .reg .pred to_right;\n\t"
        "setp.gt.u32 to_right, %3, %4;\n\t"
        "mad.lo.u32 %0, %0, 2, %1;\n\t"
        "@to_right add.u32 %0, %0, %2; }"
        : "+r"(at)
        : "r"(left), "r"(more), "r"(code), "r"(word));
    return at;
  }
  /// Uses assembly to save instructions. A word below kMissingLeft belongs to a split that sends missing values
  /// right.
  template <std::uint32_t mask, std::uint32_t step>
  FVM_DEVICE static std::uint32_t child(std::uint32_t at, float x, float threshold, std::uint32_t word) {
    static_assert(kMissingLeft < kLeaf);
    asm("{ .reg .pred to_right; .reg .b32 steps;\n\t"
        "setp.lt.u32 to_right, %3, %4;\n\t"
        "setp.geu.and.f32 to_right, %1, %2, to_right;\n\t"
        "setp.ge.or.f32 to_right, %1, %2, to_right;\n\t"
        "lop3.and.b32 steps|to_right, %3, %5, 0, 0xc0, to_right;\n\t"
        "mad.lo.u32 %0, steps, %6, %0;\n\t"
        "@to_right add.u32 %0, %0, %6; }"
        : "+r"(at)
        : "f"(x), "f"(threshold), "r"(word), "n"(kMissingLeft), "n"(mask), "n"(step));
    return at;
  }
  /// Uses assembly to save instructions. A word below kMissingLeft belongs to a split that sends missing values
  /// right.
  FVM_DEVICE static std::uint32_t sibling(std::uint32_t left, float x, float threshold, std::uint32_t word) {
    asm("{ .reg .pred to_right;\n\t"
        "setp.lt.u32 to_right, %3, %4;\n\t"
        "setp.geu.and.f32 to_right, %1, %2, to_right;\n\t"
        "setp.ge.or.f32 to_right, %1, %2, to_right;\n\t"
        "setp.ge.and.s32 to_right, %3, 0, to_right;\n\t"
        "@to_right add.u32 %0, %0, 1; }"
        : "+r"(left)
        : "f"(x), "f"(threshold), "r"(word), "n"(kMissingLeft));
    return left;
  }

  FVM_DEVICE static void sync(std::uint32_t) { __syncthreads(); }

  FVM_DEVICE static unsigned warp_size() { return 32; }

  /// The mask may name lanes that the block does not have: like threads that have ended, they are not waited for.
  template <class T>
  FVM_DEVICE static T shuffle_down(T value, unsigned by, std::uint32_t) {
    static_assert(sizeof(T) % sizeof(unsigned) == 0);

    unsigned words[sizeof(T) / sizeof(unsigned)];
    std::memcpy(words, &value, sizeof value);
    for (unsigned& word : words) word = __shfl_down_sync(~0u, word, by);
    std::memcpy(&value, words, sizeof value);
    return value;
  }

  FVM_DEVICE static void copy_async(std::byte* to, const std::byte* from, unsigned bytes) {
#if __CUDA_ARCH__ >= 800
    const auto at = static_cast<unsigned>(__cvta_generic_to_shared(to));
    if (bytes == 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    else if (bytes == 8)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at), "l"(from) : "memory");
    else
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at), "l"(from) : "memory");
#else
    if (bytes == 16)
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    else if (bytes == 8)
      *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(from);
    else
      *reinterpret_cast<unsigned*>(to) = *reinterpret_cast<const unsigned*>(from);
#endif
  }
  FVM_DEVICE static void wait_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  }

  FVM_DEVICE static constexpr bool has_bulk_copies() {
#if __CUDA_ARCH__ >= 900
    return true;
#else
    return false;
#endif
  }
  FVM_DEVICE static void make_bulk_barrier([[maybe_unused]] std::uint32_t barrier) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(barrier)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
  }
  /// The fence keeps bulk copies from overtaking what threads wrote to their target. No block has so much shared
  /// memory that `bytes` would exceed what a phase counts, 2^20 - 1.
  FVM_DEVICE static void expect_bulk([[maybe_unused]] std::uint32_t barrier,
                                     [[maybe_unused]] std::uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(at(barrier)),
                 "r"(bytes)
                 : "memory");
#endif
  }
  FVM_DEVICE static void copy_bulk([[maybe_unused]] std::uint32_t to, [[maybe_unused]] const std::byte* from,
                                   [[maybe_unused]] std::uint32_t bytes,
                                   [[maybe_unused]] std::uint32_t barrier) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            at(to)),
        "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(at(barrier))
        : "memory");
#endif
  }
  FVM_DEVICE static void wait_bulk([[maybe_unused]] std::uint32_t barrier,
                                   [[maybe_unused]] std::uint32_t parity, std::uint32_t) {
#if __CUDA_ARCH__ >= 900
    std::uint32_t arrived;
    do {
      asm volatile(
          "{ .reg .pred arrived;\n\t"
          "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 arrived, [%1], %2;\n\t"
          "selp.b32 %0, 1, 0, arrived; }"
          : "=r"(arrived)
          : "r"(at(barrier)), "r"(parity)
          : "memory");
    } while (arrived == 0);
#endif
  }

  FVM_DEVICE static void fence() { __threadfence(); }

  /// Takes denormal numbers for zeros in global memory, as PTX's only atomic addition of float32 does there.
  FVM_DEVICE static float fetch_add(float& sum, float more) { return atomicAdd(&sum, more); }
  FVM_DEVICE static double fetch_add(double& sum, double more) { return atomicAdd(&sum, more); }
  FVM_DEVICE static std::uint32_t fetch_add(std::uint32_t& sum, std::uint32_t more) {
    return atomicAdd(&sum, more);
  }
  FVM_DEVICE static std::uint64_t fetch_add(std::uint64_t& sum, std::uint64_t more) {
    static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
    return atomicAdd(reinterpret_cast<unsigned long long*>(&sum), static_cast<unsigned long long>(more));
  }

 private:
  /// Returns the address of an offset from the beginning of the block's shared memory.
  FVM_DEVICE static std::uint32_t at(std::uint32_t offset) { return shared_address(shared()) + offset; }

  /// Chooses by comparing, because an array of the three would lie in memory.
  FVM_DEVICE static unsigned component(unsigned x, unsigned y, unsigned z, unsigned which) {
    return which == 0 ? x : which == 1 ? y : z;
  }
};

}  // namespace forestvm::kernels
