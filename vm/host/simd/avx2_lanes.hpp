// Eight walks in the lanes of AVX2 vectors.
#pragma once

#include <immintrin.h>

#include <bit>

#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/sparse8.hpp>

#include "vm/host/simd/ordered_sums.hpp"

namespace forestvm::host {

struct Avx2Lanes : OrderedSums {
  static constexpr unsigned kLanes = 8;
  /// Most floats from row to row: offsets have 32 bits.
  static constexpr std::size_t kMaxStride = std::size_t{1} << 27;
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

  /// Returns the first nodes of trees, by the trees' numbers.
  FVM_INLINE static Ints roots(const TreeDesc* trees, Ints index) {
    static_assert(sizeof(TreeDesc) % 4 == 0);
    return _mm256_i32gather_epi32(reinterpret_cast<const int*>(&trees->first_node),
                                  times(index, sizeof(TreeDesc) / 4), 4);
  }
  FVM_INLINE static Floats values(const Sparse8View::Node* nodes, Ints at) {
    return _mm256_i32gather_ps(&nodes->value, at, sizeof *nodes);
  }

  struct Step {
    Ints at;
    bool walking;  ///< True if some lane was not at a leaf before the step.
  };

  /// Takes one step in each lane; a lane at a leaf stays there. value(vector, feature) returns what the lanes
  /// test.
  template <class Value>
  FVM_INLINE static Step step(const Sparse8View::Node* nodes, Ints at, unsigned vector, const Value& value) {
    const __m256 threshold = values(nodes, at);
    const __m256i word =
        _mm256_i32gather_epi32(reinterpret_cast<const int*>(&nodes->word), at, sizeof *nodes);
    const __m256i feature =
        _mm256_srli_epi32(_mm256_and_si256(word, all(kFeatureMask)), Sparse8View::kDistanceBits);
    const __m256 x = value(vector, feature);
    // The flag becomes the sign, which the shift spreads over the lane: the `and` takes it as a mask.
    const __m256 missing_left = _mm256_castsi256_ps(_mm256_srai_epi32(_mm256_slli_epi32(word, 1), 31));
    const __m256 left = _mm256_or_ps(_mm256_cmp_ps(x, threshold, _CMP_LT_OQ),
                                     _mm256_and_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q), missing_left));
    const __m256i leaf = _mm256_srai_epi32(word, 31);
    const __m256i next = add(at, _mm256_and_si256(word, all(Sparse8View::kDistanceMask)));
    const __m256i stays = _mm256_or_si256(_mm256_castps_si256(left), leaf);
    // Adds one, and -1 in lanes that go left or stay.
    return {add(add(next, all(1)), stays), _mm256_movemask_ps(_mm256_castsi256_ps(leaf)) != 0xff};
  }

  /// The values of a row, by features.
  struct RowValues {
    const float* row;
    FVM_INLINE RowValues(const float* from, std::size_t) : row(from) {}
    FVM_INLINE Floats operator[](Ints feature) const { return gather(row, feature); }
  };

  /// The codes of a row, read from memory. Only the lowest byte of a lane counts.
  struct RowCodes {
    const std::uint8_t* row;
    std::uint32_t last;
    FVM_INLINE RowCodes(const std::uint8_t* from, std::size_t columns)
        : row(from), last(columns == 0 ? 0 : static_cast<std::uint32_t>(columns - 1)) {}
    FVM_INLINE Ints operator[](Ints column) const {
      // A leaf's bits may name no column.
      const Ints known = least(_mm256_and_si256(column, all(Sparse4View::kMaxColumns - 1)), all(last));
      return _mm256_i32gather_epi32(reinterpret_cast<const int*>(row),
                                    _mm256_slli_epi32(known, std::bit_width(kCodeRows) - 1), 1);
    }
  };

  template <class Visit>
  FVM_INLINE static void with_row_codes(std::size_t, const Visit& visit) {
    visit.template operator()<RowCodes>();
  }

  /// Returns the numbers of the leaves where walks have ended.
  FVM_INLINE static Ints leaves(const Sparse4View::Node* nodes, Ints at) {
    const Ints word = _mm256_i32gather_epi32(reinterpret_cast<const int*>(nodes), at, sizeof *nodes);
    const Ints leaf = _mm256_cmpeq_epi32(_mm256_and_si256(word, all(0xff)), all(kNeverRight));
    return _mm256_and_si256(leaf, _mm256_srli_epi32(word, Sparse4View::kLeafShift));
  }

  template <class Value>
  FVM_INLINE static Step step(const Sparse4View::Node* nodes, Ints at, unsigned vector, const Value& value) {
    const Ints word = _mm256_i32gather_epi32(reinterpret_cast<const int*>(nodes), at, sizeof *nodes);
    const Ints x =
        _mm256_and_si256(value(vector, _mm256_srli_epi32(word, Sparse4View::kColumnShift)), all(0xff));
    const Ints code = _mm256_and_si256(word, all(0xff));
    const Ints leaf = _mm256_cmpeq_epi32(code, all(kNeverRight));
    const Ints distance = _mm256_andnot_si256(leaf, _mm256_srli_epi32(word, Sparse4View::kDistanceShift));
    // The comparison gives -1 in lanes that go right.
    const Ints next = _mm256_sub_epi32(add(at, distance), _mm256_cmpgt_epi32(x, code));
    return {next, _mm256_movemask_ps(_mm256_castsi256_ps(leaf)) != 0xff};
  }
};

}  // namespace forestvm::host
