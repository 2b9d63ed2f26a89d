// Eight walks in the lanes of AVX2 vectors.
#pragma once

#include <immintrin.h>

#include <forestvm/core/layout/sparse8.hpp>

namespace forestvm::host {

struct Avx2Lanes {
  static constexpr unsigned kLanes = 8;
  using Floats = __m256;
  using Ints = __m256i;

  FVM_INLINE static Ints all(std::uint32_t value) { return _mm256_set1_epi32(static_cast<int>(value)); }
  FVM_INLINE static Ints from(std::uint32_t first) {
    return add(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), all(first));
  }
  FVM_INLINE static Ints least(Ints a, Ints b) { return _mm256_min_epu32(a, b); }
  FVM_INLINE static Ints times(Ints a, std::uint32_t by) { return _mm256_mullo_epi32(a, all(by)); }
  FVM_INLINE static Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
  FVM_INLINE static Floats gather(const float* at, Ints index) { return _mm256_i32gather_ps(at, index, 4); }
  FVM_INLINE static void store(float* to, Floats values) { _mm256_storeu_ps(to, values); }
  FVM_INLINE static void store(std::uint32_t* to, Ints values) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), values);
  }

  /// The first nodes of trees, by their numbers.
  FVM_INLINE static Ints roots(const TreeDesc* trees, Ints index) {
    static_assert(sizeof(TreeDesc) % 4 == 0);
    return _mm256_i32gather_epi32(reinterpret_cast<const int*>(&trees->first_node),
                                  times(index, sizeof(TreeDesc) / 4), 4);
  }
  FVM_INLINE static Floats values(const Sparse8View::Node* nodes, Ints at) {
    return _mm256_i32gather_ps(&nodes->value, at, sizeof *nodes);
  }

  struct Hop {
    Ints at;
    bool walking;  ///< some lane was not at a leaf before
  };

  /// One hop of each lane; at a leaf it stays. value(vector, feature) gives what the lanes test.
  template <class Value>
  FVM_INLINE static Hop hop(const Sparse8View::Node* nodes, Ints at, unsigned vector, const Value& value) {
    const __m256 threshold = values(nodes, at);
    const __m256i word =
        _mm256_i32gather_epi32(reinterpret_cast<const int*>(&nodes->word), at, sizeof *nodes);
    const __m256i feature =
        _mm256_srli_epi32(_mm256_and_si256(word, all(kFeatureMask)), Sparse8View::kDistanceBits);
    const __m256 x = value(vector, feature);
    // The flag becomes the sign, which is what the and needs to be spread over the lane.
    const __m256 missing_left = _mm256_castsi256_ps(_mm256_srai_epi32(_mm256_slli_epi32(word, 1), 31));
    const __m256 left = _mm256_or_ps(_mm256_cmp_ps(x, threshold, _CMP_LT_OQ),
                                     _mm256_and_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q), missing_left));
    const __m256i leaf = _mm256_srai_epi32(word, 31);
    const __m256i next = add(at, _mm256_and_si256(word, all(Sparse8View::kDistanceMask)));
    const __m256i stays = _mm256_or_si256(_mm256_castps_si256(left), leaf);
    // One more, and one less where the lane goes left or stays.
    return {add(add(next, all(1)), stays), _mm256_movemask_ps(_mm256_castsi256_ps(leaf)) != 0xff};
  }
};

}  // namespace forestvm::host
