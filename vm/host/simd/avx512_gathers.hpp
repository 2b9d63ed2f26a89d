// Gathers of whole AVX-512 vectors that wait for nothing but their indices. A gather keeps the lanes of its destination
// that the mask leaves out. If the mask is a constant of ones, GCC therefore drops the zeroing of the destination, but
// the processor still waits for the instruction that wrote that register last, which in a loop is often the gather
// before. These functions hide the mask's value from the compiler.
#pragma once

#include <immintrin.h>

#include <forestvm/core/platform.hpp>

namespace forestvm::host {

/// Returns a mask of all lanes. To the compiler it depends on the indices: otherwise the mask would have a register for
/// the whole function, which functions with many masks lack.
template <class Index>
FVM_INLINE __mmask16 all_lanes(Index index) {
  __mmask16 mask = 0xffff;
  __asm__("" : "+Yk"(mask) : "v"(index));
  return mask;
}

/// Gathers words at base + index * kScale bytes.
template <int kScale>
FVM_INLINE __m512i gather_words(const void* base, __m512i index) {
  return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), all_lanes(index), index, base, kScale);
}

template <int kScale>
FVM_INLINE __m512 gather_floats(const void* base, __m512i index) {
  return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), all_lanes(index), index, base, kScale);
}

template <int kScale>
FVM_INLINE __m512i gather_pairs(const void* base, __m256i index) {
  return _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), static_cast<__mmask8>(all_lanes(index)), index,
                                     base, kScale);
}

template <int kScale>
FVM_INLINE __m512d gather_doubles(const void* base, __m256i index) {
  return _mm512_mask_i32gather_pd(_mm512_setzero_pd(), static_cast<__mmask8>(all_lanes(index)), index, base,
                                  kScale);
}

}  // namespace forestvm::host
