// Gathers of whole AVX2 vectors that wait for nothing but their indices. avx512_gathers.hpp says why plain gathers wait
// for more.
#pragma once

#include <immintrin.h>

#include <forestvm/core/platform.hpp>

namespace forestvm::host {

/// Returns a mask of all lanes, whose value the compiler does not know.
template <class Index>
FVM_INLINE __m256i all_lanes(Index index) {
  __m256i mask = _mm256_set1_epi32(-1);
  __asm__("" : "+x"(mask) : "x"(index));
  return mask;
}

/// Gathers words at base + index * kScale bytes.
template <int kScale>
FVM_INLINE __m256i gather_words(const void* base, __m256i index) {
  return _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), static_cast<const int*>(base), index,
                                     all_lanes(index), kScale);
}

template <int kScale>
FVM_INLINE __m256 gather_floats(const void* base, __m256i index) {
  return _mm256_mask_i32gather_ps(_mm256_setzero_ps(), static_cast<const float*>(base), index,
                                  _mm256_castsi256_ps(all_lanes(index)), kScale);
}

/// Gathers pairs of words at base + index * kScale bytes.
template <int kScale>
FVM_INLINE __m256i gather_pairs(const void* base, __m128i index) {
  return _mm256_mask_i32gather_epi64(_mm256_setzero_si256(), static_cast<const long long*>(base), index,
                                     all_lanes(index), kScale);
}

}  // namespace forestvm::host
