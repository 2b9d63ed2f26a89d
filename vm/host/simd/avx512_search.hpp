// Ranks of 64 values on AVX-512: seven levels of the search by permutes of splitters in registers, the rest
// by gathers, four vectors in flight.
#pragma once

#include <immintrin.h>

#include "vm/host/encode_rows.hpp"

namespace forestvm::host {

struct Avx512Search {
  /// So many are faster one by one.
  static constexpr unsigned kFewRows = 16;
  /// Values are gathered by 32-bit offsets.
  static constexpr std::size_t kMostStride = std::size_t{1} << 26;

  FVM_INLINE static void encode(const FeatureSearch& search, const float* rows, std::size_t stride,
                                unsigned count, std::uint8_t* codes) {
    if (count <= kFewRows || stride > kMostStride) {
      for (unsigned r = 0; r < count; ++r) encode_one(search, rows[r * stride + search.feature], codes + r);
      return;
    }
    if (count <= 32)
      encode_vectors<2>(search, rows, stride, count, codes);
    else
      encode_vectors<4>(search, rows, stride, count, codes);
  }

 private:
  template <unsigned kVectors>
  FVM_INLINE static void encode_vectors(const FeatureSearch& search, const float* rows, std::size_t stride,
                                        unsigned count, std::uint8_t* codes) {
    __m512 x[kVectors];
    __mmask16 here[kVectors];
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i offsets = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(static_cast<int>(stride)));
    for (unsigned v = 0; v < kVectors; ++v) {
      here[v] = static_cast<__mmask16>(_bzhi_u32(0xffff, count > 16 * v ? count - 16 * v : 0));
      const float* const from = rows + search.feature + 16 * v * stride;
      x[v] = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), here[v], offsets, from, 4);
    }
    __m512i rank[kVectors];
    find(search, x, rank);
    std::uint8_t* to = codes + std::size_t{search.first_column} * kCodeRows;
    for (const ColumnDesc& column : search.columns) {
      const __m512i first = _mm512_set1_epi32(static_cast<int>(column.first)),
                    most = _mm512_set1_epi32(column.count),
                    missing = _mm512_set1_epi32(column.missing_highest != 0 ? column.count : 0);
      for (unsigned v = 0; v < kVectors; ++v) {
        const __m512i above = _mm512_sub_epi32(_mm512_max_epu32(rank[v], first), first);
        const __mmask16 none = _mm512_cmp_ps_mask(x[v], x[v], _CMP_UNORD_Q);
        const __m512i code = _mm512_mask_mov_epi32(_mm512_min_epu32(above, most), none, missing);
        _mm_mask_storeu_epi8(to + 16 * v, here[v], _mm512_cvtepi32_epi8(code));
      }
      to += kCodeRows;
    }
  }

  /// Of 16 of a feature's thresholds, how many are at or below x.
  FVM_INLINE static std::uint32_t reached(const float* thresholds, __m512 x) {
    return static_cast<std::uint32_t>(
        _mm_popcnt_u32(_mm512_cmp_ps_mask(x, _mm512_loadu_ps(thresholds), _CMP_GE_OQ)));
  }

  /// Compares with all splitters, then with all thresholds after the last that is reached.
  FVM_INLINE static void encode_one(const FeatureSearch& search, float value, std::uint8_t* codes) {
    const __m512 x = _mm512_set1_ps(value);
    std::uint32_t rank = reached(search.splitters, x);
    if (search.bits > 4) rank += reached(search.splitters + 16, x);
    if (search.bits > 5) {
      const std::uint32_t between = (1u << (search.bits - 5)) - 1;
      rank *= between + 1;
      const float* const from = search.thresholds + rank;
      for (std::uint32_t i = 0; i < between; i += 16) {
        const auto these = static_cast<__mmask16>(_bzhi_u32(0xffff, between - i));
        rank += static_cast<std::uint32_t>(_mm_popcnt_u32(
            _mm512_mask_cmp_ps_mask(these, x, _mm512_maskz_loadu_ps(these, from + i), _CMP_GE_OQ)));
      }
    }
    std::uint8_t* to = codes + std::size_t{search.first_column} * kCodeRows;
    for (const ColumnDesc& column : search.columns) {
      *to = column_code(column, rank, value != value);
      to += kCodeRows;
    }
  }

  template <unsigned kVectors>
  FVM_INLINE static void find(const FeatureSearch& search, const __m512 (&x)[kVectors],
                              __m512i (&rank)[kVectors]) {
    const __m512 low = _mm512_loadu_ps(search.splitters), high = _mm512_loadu_ps(search.splitters + 16);
    for (__m512i& r : rank) r = _mm512_setzero_si512();
    const unsigned by_permute = search.bits < 5 ? search.bits : 5;
    for (unsigned step = (1u << by_permute) / 2; step != 0; step /= 2) {
      const __m512i before = _mm512_set1_epi32(static_cast<int>(step) - 1),
                    more = _mm512_set1_epi32(static_cast<int>(step));
      for (unsigned v = 0; v < kVectors; ++v) {
        const __m512 at = _mm512_permutex2var_ps(low, _mm512_add_epi32(rank[v], before), high);
        rank[v] = _mm512_mask_add_epi32(rank[v], _mm512_cmp_ps_mask(x[v], at, _CMP_GE_OQ), rank[v], more);
      }
    }
    if (search.bits <= 5) return;
    const float* const sixth = search.splitters + FeatureSearch::kFirst;
    narrow(x, rank, [s0 = _mm512_loadu_ps(sixth), s1 = _mm512_loadu_ps(sixth + 16)](__m512i r) {
      return _mm512_permutex2var_ps(s0, r, s1);
    });
    if (search.bits <= 6) return;
    const float* const seventh = sixth + FeatureSearch::kSixth;
    const __m512 s0 = _mm512_loadu_ps(seventh), s1 = _mm512_loadu_ps(seventh + 16),
                 s2 = _mm512_loadu_ps(seventh + 32), s3 = _mm512_loadu_ps(seventh + 48);
    narrow(x, rank, [&](__m512i r) {
      return _mm512_mask_blend_ps(_mm512_test_epi32_mask(r, _mm512_set1_epi32(32)),
                                  _mm512_permutex2var_ps(s0, r, s1), _mm512_permutex2var_ps(s2, r, s3));
    });
    const unsigned by_gather = search.bits - 7;
    for (__m512i& r : rank) r = _mm512_slli_epi32(r, by_gather);
    for (unsigned step = (1u << by_gather) / 2; step != 0; step /= 2) {
      const __m512i more = _mm512_set1_epi32(static_cast<int>(step));
      for (unsigned v = 0; v < kVectors; ++v) {
        const __m512 at =
            _mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, rank[v], search.thresholds + step - 1, 4);
        rank[v] = _mm512_mask_add_epi32(rank[v], _mm512_cmp_ps_mask(x[v], at, _CMP_GE_OQ), rank[v], more);
      }
    }
  }

  /// One more step of the search: splitter(ranks) gives what it compares with.
  template <unsigned kVectors, class Splitter>
  FVM_INLINE static void narrow(const __m512 (&x)[kVectors], __m512i (&rank)[kVectors],
                                const Splitter& splitter) {
    for (unsigned v = 0; v < kVectors; ++v) {
      const __m512i twice = _mm512_add_epi32(rank[v], rank[v]);
      rank[v] = _mm512_mask_add_epi32(twice, _mm512_cmp_ps_mask(x[v], splitter(rank[v]), _CMP_GE_OQ), twice,
                                      _mm512_set1_epi32(1));
    }
  }
};

}  // namespace forestvm::host
