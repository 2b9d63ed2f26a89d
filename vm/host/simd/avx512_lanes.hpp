// Sixteen walks in the lanes of AVX-512 vectors.
#pragma once

#include <immintrin.h>

#include <forestvm/core/layout/sparse8.hpp>

namespace forestvm::host {

struct Avx512Lanes {
  static constexpr unsigned kLanes = 16;
  using Floats = __m512;
  using Ints = __m512i;

  FVM_INLINE static Ints all(std::uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }
  FVM_INLINE static Ints from(std::uint32_t first) {
    return add(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), all(first));
  }
  FVM_INLINE static Ints least(Ints a, Ints b) { return _mm512_min_epu32(a, b); }
  FVM_INLINE static Ints times(Ints a, std::uint32_t by) { return _mm512_mullo_epi32(a, all(by)); }
  FVM_INLINE static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  FVM_INLINE static Floats gather(const float* at, Ints index) { return _mm512_i32gather_ps(index, at, 4); }
  FVM_INLINE static void store(float* to, Floats values) { _mm512_storeu_ps(to, values); }
  FVM_INLINE static void store(std::uint32_t* to, Ints values) { _mm512_storeu_si512(to, values); }

  /// The first nodes of trees, by their numbers.
  FVM_INLINE static Ints roots(const TreeDesc* trees, Ints index) {
    static_assert(sizeof(TreeDesc) % 4 == 0);
    return _mm512_i32gather_epi32(times(index, sizeof(TreeDesc) / 4), &trees->first_node, 4);
  }
  FVM_INLINE static Floats values(const Sparse8View::Node* nodes, Ints at) {
    return _mm512_i32gather_ps(at, &nodes->value, sizeof *nodes);
  }

  struct Hop {
    Ints at;
    bool walking;  ///< some lane was not at a leaf before
  };

  /// One hop of each lane; at a leaf it stays. value(vector, feature) gives what the lanes test.
  template <class Value>
  FVM_INLINE static Hop hop(const Sparse8View::Node* nodes, Ints at, unsigned vector, const Value& value) {
    const __m512i low = _mm512_i32gather_epi64(_mm512_castsi512_si256(at), nodes, sizeof *nodes);
    const __m512i high = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), nodes, sizeof *nodes);
    const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512 threshold = _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, evens, high));
    const __m512i word = _mm512_permutex2var_epi32(low, add(evens, all(1)), high);
    const __m512i feature =
        _mm512_srli_epi32(_mm512_and_si512(word, all(kFeatureMask)), Sparse8View::kDistanceBits);
    const __m512 x = value(vector, feature);
    const __mmask16 left =
        _mm512_cmp_ps_mask(x, threshold, _CMP_LT_OQ) |
        _mm512_mask_cmp_ps_mask(_mm512_test_epi32_mask(word, all(kMissingLeft)), x, x, _CMP_UNORD_Q);
    const __mmask16 split = _mm512_cmpge_epi32_mask(word, _mm512_setzero_si512());
    const __m512i next = add(at, _mm512_and_si512(word, all(Sparse8View::kDistanceMask)));
    const auto right = static_cast<__mmask16>(split & ~left);
    return {_mm512_mask_add_epi32(next, right, next, all(1)), split != 0};
  }
};

}  // namespace forestvm::host
