// Device for HIP, see device.hpp. Lanes of a wavefront run in step, so that shuffles need no mask. The second
// argument of HIP's __launch_bounds__ counts wavefronts of an execution unit, not blocks as CUDA's does.
#pragma once

#include <hip/hip_runtime.h>

#include <cstddef>
#include <cstdint>

#define FVM_DEVICE __device__ inline
#define FVM_DEVICE_CALL __device__ __attribute__((noinline)) static
#define FVM_DEVICE_COLD __device__ __attribute__((noinline))
#define FVM_UNROLL(times) _Pragma(FVM_TEXT(unroll times))
#define FVM_NO_UNROLL _Pragma("unroll 1")
#define FVM_TEXT(words) #words
#define FVM_KERNEL extern "C" __global__
#define FVM_KERNEL_ARGUMENT

#include <forestvm/core/forest_data.hpp>

/// Address spaces of AMD's compiler: pointers of 32 and of 64 bits.
#define FVM_SHARED __attribute__((address_space(3)))
#define FVM_GLOBAL __attribute__((address_space(1)))

namespace forestvm::kernels {

extern __shared__ float4 shared_memory[];

struct Device {
  static constexpr unsigned kMostThreads = 512;

  /// Where the launch put it: taking the address of the parameter itself would copy it for each thread.
  template <class T>
  FVM_DEVICE static const T& argument(const T&) {
    return *(const T*)__builtin_amdgcn_kernarg_segment_ptr();
  }

  FVM_DEVICE static unsigned index(unsigned dimension) {
    return dimension < 3 ? component(blockIdx.x, blockIdx.y, blockIdx.z, dimension)
                         : component(threadIdx.x, threadIdx.y, threadIdx.z, dimension - 3);
  }
  FVM_DEVICE static unsigned extent(unsigned dimension) {
    return dimension < 3 ? component(gridDim.x, gridDim.y, gridDim.z, dimension)
                         : component(blockDim.x, blockDim.y, blockDim.z, dimension - 3);
  }
  FVM_DEVICE static std::byte* shared() { return reinterpret_cast<std::byte*>(shared_memory); }

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
  FVM_DEVICE static const T* in_global(const T* pointer) {
    return (const T*)(const FVM_GLOBAL T*)pointer;
  }
  template <class T>
  FVM_DEVICE static T kept(T value) {
    return value;
  }
  FVM_DEVICE static std::uint32_t way(float x, float threshold, std::uint32_t word, std::uint32_t left,
                                      std::uint32_t right) {
    return (x < threshold) | ((x != x) & ((word & kMissingLeft) != 0)) ? left : right;
  }

  FVM_DEVICE static void sync(std::uint32_t) { __syncthreads(); }
  FVM_DEVICE static bool any(bool vote, std::uint32_t) { return __syncthreads_or(vote) != 0; }

#if defined(__AMDGCN_WAVEFRONT_SIZE)
  FVM_DEVICE static unsigned warp_size() { return __AMDGCN_WAVEFRONT_SIZE; }
#else
  FVM_DEVICE static unsigned warp_size() { return static_cast<unsigned>(warpSize); }
#endif

  template <class T>
  FVM_DEVICE static T shuffle_down(T value, unsigned by, std::uint32_t) {
    static_assert(sizeof(T) % sizeof(unsigned) == 0);
    unsigned words[sizeof(T) / sizeof(unsigned)];
    __builtin_memcpy(words, &value, sizeof value);
    for (unsigned& word : words) word = __shfl_down(word, by, static_cast<int>(warp_size()));
    __builtin_memcpy(&value, words, sizeof value);
    return value;
  }

  /// There is nothing to wait for.
  FVM_DEVICE static void copy_async(std::byte* to, const std::byte* from, unsigned bytes) {
    if (bytes == 16)
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    else if (bytes == 8)
      *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(from);
    else
      *reinterpret_cast<unsigned*>(to) = *reinterpret_cast<const unsigned*>(from);
  }
  FVM_DEVICE static void wait_copies() {}

  FVM_DEVICE static float fetch_add(float& sum, float more) { return atomicAdd(&sum, more); }
  FVM_DEVICE static double fetch_add(double& sum, double more) { return atomicAdd(&sum, more); }
  FVM_DEVICE static std::uint64_t fetch_add(std::uint64_t& sum, std::uint64_t more) {
    static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
    return atomicAdd(reinterpret_cast<unsigned long long*>(&sum), static_cast<unsigned long long>(more));
  }

 private:
  FVM_DEVICE static unsigned component(unsigned x, unsigned y, unsigned z, unsigned which) {
    return which == 0 ? x : which == 1 ? y : z;
  }
};

}  // namespace forestvm::kernels
