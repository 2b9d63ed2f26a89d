// Vectors of 32 bytes on AVX2, for the walkers of rank codes: see portable.hpp.
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
  FVM_INLINE static void stream_line(void* to, const void* from) {
    for (unsigned i = 0; i < 2; ++i)
      _mm256_stream_si256(static_cast<__m256i*>(to) + i,
                          _mm256_loadu_si256(static_cast<const __m256i*>(from) + i));
  }
  FVM_INLINE static void finish_streams() { _mm_sfence(); }
  /// Selects by the highest bit of each byte of the mask, which is one instruction.
  FVM_INLINE static Bytes select(Bytes mask, Bytes no, Bytes yes) {
    return reinterpret_cast<Bytes>(_mm256_blendv_epi8(
        reinterpret_cast<__m256i>(no), reinterpret_cast<__m256i>(yes), reinterpret_cast<__m256i>(mask)));
  }
};

struct Avx2Bytes : PortableBytes<Avx2Shuffle> {
  // Adds or stores leaves as PortableBytes::put_leaves does. Leaves are loaded one by one, which on AMD takes half the
  // time of gathers.
  template <bool kAdds>
  FVM_INLINE static void put_leaves(float* sums, const float* leaves, std::uint32_t, const std::uint8_t* at,
                                    std::size_t rows) {
    for (std::size_t i = 0; i < rows; i += 8, at += 8) {
      const __m256 eight = _mm256_setr_ps(leaves[at[0]], leaves[at[1]], leaves[at[2]], leaves[at[3]],
                                          leaves[at[4]], leaves[at[5]], leaves[at[6]], leaves[at[7]]);
      _mm256_storeu_ps(sums + i, kAdds ? _mm256_add_ps(_mm256_loadu_ps(sums + i), eight) : eight);
    }
  }
  template <bool kAdds>
  FVM_INLINE static void put_leaves(double* sums, const double* leaves, std::uint32_t, const std::uint8_t* at,
                                    std::size_t rows) {
    for (std::size_t i = 0; i < rows; i += 4, at += 4) {
      const __m256d four = _mm256_setr_pd(leaves[at[0]], leaves[at[1]], leaves[at[2]], leaves[at[3]]);
      _mm256_storeu_pd(sums + i, kAdds ? _mm256_add_pd(_mm256_loadu_pd(sums + i), four) : four);
    }
  }
};

}  // namespace forestvm::host
