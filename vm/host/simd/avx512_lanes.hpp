// Sixteen walks in the lanes of AVX-512 vectors: the operations that GatherWalk uses.
#pragma once

#include <immintrin.h>

#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/sparse8.hpp>

#include "vm/host/simd/avx512_byte_tests.hpp"
#include "vm/host/simd/avx512_gathers.hpp"
#include "vm/host/simd/codes_in_memory.hpp"
#include "vm/host/simd/ordered_sums.hpp"

namespace forestvm::host {

struct Avx512Lanes : OrderedSums {
  static constexpr unsigned kLanes = 16;
  /// The largest stride in floats from row to row with which values are gathered, because offsets have 32 bits.
  static constexpr std::size_t kMaxStride = std::size_t{1} << 26;
  /// The most columns of codes with which ByteTests are decided: as many as registers hold.
  static constexpr std::size_t kByteTestColumns = 256;
  static_assert(kByteTestColumns <= ByteTests::kMostColumns);
  using DecideBytes = Avx512ByteTests;
  using Floats = __m512;
  using Ints = __m512i;

  FVM_INLINE static Ints all(std::uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }
  FVM_INLINE static Ints from(std::uint32_t first) {
    return add(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), all(first));
  }
  FVM_INLINE static Ints least(Ints a, Ints b) { return _mm512_min_epu32(a, b); }
  FVM_INLINE static Ints times(Ints a, std::uint32_t by) { return _mm512_mullo_epi32(a, all(by)); }
  FVM_INLINE static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
  template <int kBits>
  FVM_INLINE static Ints shifted_left(Ints a) {
    return _mm512_slli_epi32(a, kBits);
  }
  FVM_INLINE static Floats gather(const float* at, Ints index) { return gather_floats<4>(at, index); }
  /// Gathers four bytes at each distance in bytes.
  FVM_INLINE static Ints gather(const std::uint8_t* at, Ints index) { return gather_words<1>(at, index); }
  FVM_INLINE static void store(float* to, Floats values) { _mm512_storeu_ps(to, values); }
  FVM_INLINE static void store(std::uint32_t* to, Ints values) { _mm512_storeu_si512(to, values); }

  /// Loads as many words as there are lanes.
  FVM_INLINE static Ints load(const std::uint32_t* from) { return _mm512_loadu_si512(from); }

  /// Loads as many bytes as there are lanes, each into a word.
  FVM_INLINE static Ints from_bytes(const std::uint8_t* from) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }

  /// A node of the sparse8 layout in each lane.
  struct Nodes8 {
    Floats value;
    Ints word;
  };
  FVM_INLINE static Nodes8 fetch(const Sparse8View::Node* nodes, Ints at) {
    return apart(gather_pairs<sizeof *nodes>(nodes, _mm512_castsi512_si256(at)),
                 gather_pairs<sizeof *nodes>(nodes, _mm512_extracti64x4_epi64(at, 1)));
  }
  FVM_INLINE static Nodes8 load(const Sparse8View::Node* from) {
    return apart(_mm512_loadu_si512(from), _mm512_loadu_si512(from + kLanes / 2));
  }
  FVM_INLINE static Nodes8 same(const Sparse8View::Node& node) {
    return {_mm512_set1_ps(node.value), all(node.word)};
  }

  /// Words in registers, looked up by the lowest bits of an index.
  struct WordTable {
    Ints low, high;
    WordTable() = default;
    explicit WordTable(const std::uint32_t* from) : low(load(from)), high(load(from + kLanes)) {}
    FVM_INLINE Ints operator[](Ints index) const { return _mm512_permutex2var_epi32(low, index, high); }
  };
  /// Nodes of the sparse8 layout in registers, looked up likewise.
  struct NodeTable {
    static constexpr std::uint32_t kNodes = 32;
    Floats low, high;
    WordTable words;
    NodeTable() = default;
    NodeTable(const float* values, const std::uint32_t* from)
        : low(_mm512_loadu_ps(values)), high(_mm512_loadu_ps(values + kLanes)), words(from) {}
    FVM_INLINE Nodes8 operator[](Ints index) const {
      return {_mm512_permutex2var_ps(low, index, high), words[index]};
    }
  };

  /// A node of the sparse4 layout in each lane.
  struct Nodes4 {
    Ints word;
  };
  FVM_INLINE static Nodes4 fetch(const Sparse4View::Node* nodes, Ints at) {
    return {gather_words<sizeof *nodes>(nodes, at)};
  }
  FVM_INLINE static Nodes4 load(const Sparse4View::Node* from) { return {_mm512_loadu_si512(from)}; }

  struct Step {
    Ints at;
    bool walking;  ///< True if some lane was not at a leaf before the step.
  };

  /// Takes one step in each lane from `node` at `at`; a lane at a leaf stays there. value(vector, feature) returns what
  /// the lanes test.
  template <class Value>
  FVM_INLINE static Step step(const Nodes8& node, Ints at, unsigned vector, const Value& value) {
    const __mmask16 left = goes_left(node, vector, value);
    const __mmask16 split = _mm512_cmpge_epi32_mask(node.word, _mm512_setzero_si512());
    const __m512i next = add(at, _mm512_and_si512(node.word, all(Sparse8View::kDistanceMask)));
    const auto right = static_cast<__mmask16>(split & ~left);
    return {_mm512_mask_add_epi32(next, right, next, all(1)), split != 0};
  }

  /// Takes one step in each lane where the children of node i are 2i and 2i + 1.
  template <class Value>
  FVM_INLINE static Ints step_down(const Nodes8& node, Ints number, unsigned vector, const Value& value) {
    const __m512i left = add(number, number);
    return _mm512_mask_add_epi32(left, _knot_mask16(goes_left(node, vector, value)), left, all(1));
  }

  /// The values of a row, looked up by feature.
  struct RowValues {
    const float* row;
    FVM_INLINE RowValues(const float* from, std::size_t) : row(from) {}
    FVM_INLINE Floats operator[](Ints feature) const { return gather(row, feature); }
  };

  /// The codes of a row in registers: up to Vectors x 64 columns. Only the lowest byte of a lane counts.
  template <unsigned Vectors>
  struct CodesInRegisters {
    static constexpr bool kInRegisters = true;
    __m512i bytes[Vectors];

    FVM_INLINE CodesInRegisters(const std::uint8_t* from, std::size_t columns) {
      alignas(64) std::uint8_t row[Vectors * 64];
#pragma GCC unroll 8
      for (std::size_t c = 0; c < columns; ++c) row[c] = from[c * kCodeRows];
      for (unsigned v = 0; v < Vectors; ++v) bytes[v] = _mm512_load_si512(row + v * 64);
    }
    FVM_INLINE Ints operator[](Ints column) const {
      if constexpr (Vectors == 1) {
        return _mm512_permutexvar_epi8(column, bytes[0]);
      } else if constexpr (Vectors == 2) {
        return _mm512_permutex2var_epi8(bytes[0], column, bytes[1]);
      } else {
        return _mm512_mask_blend_epi8(_mm512_movepi8_mask(column),
                                      _mm512_permutex2var_epi8(bytes[0], column, bytes[1]),
                                      _mm512_permutex2var_epi8(bytes[2], column, bytes[3]));
      }
    }
  };

  /// Calls visit.operator()<RowCodes>() with the type that suits the number of columns.
  template <class Visit>
  FVM_INLINE static void with_row_codes(std::size_t columns, const Visit& visit) {
    if (columns <= 64) return visit.template operator()<CodesInRegisters<1>>();
    if (columns <= 128) return visit.template operator()<CodesInRegisters<2>>();
    if (columns <= 256) return visit.template operator()<CodesInRegisters<4>>();
    visit.template operator()<CodesInMemory<Avx512Lanes>>();
  }

  /// Returns in each lane the number of the leaf at which its walk has ended, or 0 if it has not.
  FVM_INLINE static Ints leaves(const Nodes4& node) {
    const __mmask16 leaf = _mm512_cmpeq_epi32_mask(_mm512_and_si512(node.word, all(0xff)), all(kNeverRight));
    return _mm512_maskz_srli_epi32(leaf, node.word, Sparse4View::kLeafShift);
  }

  template <class Value>
  FVM_INLINE static Step step(const Nodes4& node, Ints at, unsigned vector, const Value& value) {
    const Ints word = node.word;
    const Ints x =
        _mm512_and_si512(value(vector, _mm512_srli_epi32(word, Sparse4View::kColumnShift)), all(0xff));
    const Ints code = _mm512_and_si512(word, all(0xff));
    const __mmask16 split = _mm512_cmpneq_epi32_mask(code, all(kNeverRight));
    const Ints next =
        _mm512_mask_add_epi32(at, split, at, _mm512_srli_epi32(word, Sparse4View::kDistanceShift));
    return {_mm512_mask_add_epi32(next, _mm512_cmpgt_epi32_mask(x, code), next, all(1)), split != 0};
  }

 private:
  /// Returns the lanes that go left.
  template <class Value>
  FVM_INLINE static __mmask16 goes_left(const Nodes8& node, unsigned vector, const Value& value) {
    const __m512i feature =
        _mm512_srli_epi32(_mm512_and_si512(node.word, all(kFeatureMask)), Sparse8View::kDistanceBits);
    const __m512 x = value(vector, feature);
    const __mmask16 missing_left = _mm512_test_epi32_mask(node.word, all(kMissingLeft));
    return _mm512_cmp_ps_mask(x, node.value, _CMP_LT_OQ) |
           _mm512_mask_cmp_ps_mask(missing_left, x, x, _CMP_UNORD_Q);
  }

  /// Separates the values and the words of sixteen nodes. The first eight nodes are in `low`.
  FVM_INLINE static Nodes8 apart(__m512i low, __m512i high) {
    const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return {_mm512_castsi512_ps(_mm512_permutex2var_epi32(low, evens, high)),
            _mm512_permutex2var_epi32(low, add(evens, all(1)), high)};
  }
};

}  // namespace forestvm::host
