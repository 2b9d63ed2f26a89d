// Vectors of 32 bytes on AVX2.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include <forestvm/core/platform.hpp>

#include "vm/host/simd/portable.hpp"

namespace forestvm::host {

struct Avx2Shuffle {
  static constexpr unsigned kLanes = 32;
  using Bytes = std::uint8_t __attribute__((vector_size(32)));

  FVM_INLINE static Bytes row(const std::uint8_t* from) {
    return reinterpret_cast<Bytes>(
        _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  }
  FVM_INLINE static Bytes shuffle(Bytes table, Bytes index) {
    return reinterpret_cast<Bytes>(
        _mm256_shuffle_epi8(reinterpret_cast<__m256i>(table), reinterpret_cast<__m256i>(index)));
  }
  /// Selects by the highest bit of each byte of the mask, which is one instruction.
  FVM_INLINE static Bytes select(Bytes mask, Bytes no, Bytes yes) {
    return reinterpret_cast<Bytes>(_mm256_blendv_epi8(
        reinterpret_cast<__m256i>(no), reinterpret_cast<__m256i>(yes), reinterpret_cast<__m256i>(mask)));
  }
};

struct Avx2Bytes : PortableBytes<Avx2Shuffle> {
  FVM_INLINE static void add_leaves(float* sums, const float* leaves, std::uint32_t, const std::uint8_t* at,
                                    std::size_t rows) {
    for (std::size_t i = 0; i < rows; i += 8) {
      const __m256i index = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at + i)));
      _mm256_storeu_ps(sums + i,
                       _mm256_add_ps(_mm256_loadu_ps(sums + i), _mm256_i32gather_ps(leaves, index, 4)));
    }
  }
  FVM_INLINE static void add_leaves(double* sums, const double* leaves, std::uint32_t, const std::uint8_t* at,
                                    std::size_t rows) {
    // Uses the gather with a mask: GCC 12 takes the undefined operand of the gather without one for an
    // uninitialised value.
    const __m256d all = _mm256_castsi256_pd(_mm256_set1_epi64x(-1));
    for (std::size_t i = 0; i < rows; i += 4) {
      const __m128i index = _mm_cvtepu8_epi32(_mm_loadu_si32(at + i));
      const __m256d found = _mm256_mask_i32gather_pd(_mm256_setzero_pd(), leaves, index, all, 8);
      _mm256_storeu_pd(sums + i, _mm256_add_pd(_mm256_loadu_pd(sums + i), found));
    }
  }
};

}  // namespace forestvm::host
