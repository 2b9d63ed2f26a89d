// Defines the words with which the shared headers compile as host code and as CUDA or HIP device code.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define FVM_HOST_DEVICE __host__ __device__
#else
#define FVM_HOST_DEVICE
#endif

/// Unrolls the loop that follows, which takes 16 turns at most, also in code that is compiled for size.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define FVM_UNROLL_ALL _Pragma("unroll")
#else
#define FVM_UNROLL_ALL _Pragma("GCC unroll 16")
#endif

/// Marks functions that walkers call at each step. They are always inlined, so that no copy compiled for one
/// CPU target can be linked into another's code.
#define FVM_INLINE FVM_HOST_DEVICE inline __attribute__((always_inline))

namespace forestvm {

/// Returns the number of bits that are set.
FVM_INLINE unsigned popcount(unsigned value) {
#if defined(__CUDA_ARCH__)
  return static_cast<unsigned>(__popc(value));
#else
  return static_cast<unsigned>(__builtin_popcount(value));
#endif
}

}  // namespace forestvm
