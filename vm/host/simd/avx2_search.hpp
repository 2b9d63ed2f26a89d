// Ranks of values on AVX2, eight to a vector, every level of the search by a gather; four vectors in flight.
#pragma once

#include <immintrin.h>

#include "vm/host/encode_rows.hpp"

namespace forestvm::host {

struct Avx2Search {
  static constexpr unsigned kLanes = 8;
  static constexpr std::size_t kMostStride = std::size_t{1} << 27;  ///< values are gathered by 32-bit offsets

  FVM_INLINE static void encode(const FeatureSearch& search, const float* rows, std::size_t stride,
                                unsigned count, std::uint8_t* codes) {
    const unsigned whole = stride > kMostStride ? 0 : count / kLanes * kLanes;
    const __m256i offsets = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                               _mm256_set1_epi32(static_cast<int>(stride)));
    unsigned r = 0;
    for (; r + 4 * kLanes <= whole; r += 4 * kLanes)
      encode_vectors<4>(search, rows + r * stride, stride, offsets, codes + r);
    for (; r < whole; r += kLanes) encode_vectors<1>(search, rows + r * stride, stride, offsets, codes + r);
    if (whole < count)
      ScalarSearch::encode(search, rows + whole * stride, stride, count - whole, codes + whole);
  }

 private:
  template <unsigned Vectors>
  FVM_INLINE static void encode_vectors(const FeatureSearch& search, const float* rows, std::size_t stride,
                                        __m256i offsets, std::uint8_t* codes) {
    __m256 x[Vectors];
    __m256i rank[Vectors];
    for (unsigned v = 0; v < Vectors; ++v) {
      x[v] = _mm256_i32gather_ps(rows + search.feature + v * kLanes * stride, offsets, 4);
      rank[v] = _mm256_setzero_si256();
    }
    for (unsigned step = (1u << search.bits) / 2; step != 0; step /= 2) {
      const __m256i more = _mm256_set1_epi32(static_cast<int>(step));
      for (unsigned v = 0; v < Vectors; ++v) {
        const __m256 at = _mm256_i32gather_ps(search.thresholds + step - 1, rank[v], 4);
        const __m256i right = _mm256_castps_si256(_mm256_cmp_ps(x[v], at, _CMP_GE_OQ));
        rank[v] = _mm256_add_epi32(rank[v], _mm256_and_si256(right, more));
      }
    }
    for (unsigned v = 0; v < Vectors; ++v)
      write(search, rank[v], _mm256_castps_si256(_mm256_cmp_ps(x[v], x[v], _CMP_UNORD_Q)),
            codes + v * kLanes);
  }

  FVM_INLINE static void write(const FeatureSearch& search, __m256i rank, __m256i none, std::uint8_t* codes) {
    std::uint8_t* to = codes + std::size_t{search.first_column} * kCodeRows;
    for (const ColumnDesc& column : search.columns) {
      const __m256i first = _mm256_set1_epi32(static_cast<int>(column.first)),
                    most = _mm256_set1_epi32(column.count),
                    missing = _mm256_set1_epi32(column.missing_highest != 0 ? column.count : 0);
      const __m256i above = _mm256_sub_epi32(_mm256_max_epu32(rank, first), first);
      const __m256i code = _mm256_blendv_epi8(_mm256_min_epu32(above, most), missing, none);
      const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(code), _mm256_extracti128_si256(code, 1));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
      to += kCodeRows;
    }
  }
};

}  // namespace forestvm::host
