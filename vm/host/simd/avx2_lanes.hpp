// Eight walks in the lanes of AVX2 vectors: the operations that GatherWalk uses.
#pragma once

#include <immintrin.h>

#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/sparse8.hpp>

#include "vm/host/simd/avx2_gathers.hpp"
#include "vm/host/simd/codes_in_memory.hpp"
#include "vm/host/simd/ordered_sums.hpp"

namespace forestvm::host {

struct Avx2Lanes : OrderedSums {
  static constexpr unsigned kLanes = 8;
  /// The largest stride in floats from row to row with which values are gathered, because offsets have 32 bits.
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
  template <int kBits>
  FVM_INLINE static Ints shifted_left(Ints a) {
    return _mm256_slli_epi32(a, kBits);
  }
  FVM_INLINE static Floats gather(const float* at, Ints index) { return gather_floats<4>(at, index); }
  /// Gathers four bytes at each distance in bytes.
  FVM_INLINE static Ints gather(const std::uint8_t* at, Ints index) { return gather_words<1>(at, index); }
  FVM_INLINE static void store(float* to, Floats values) { _mm256_storeu_ps(to, values); }
  FVM_INLINE static void store(std::uint32_t* to, Ints values) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), values);
  }

  /// Loads as many words as there are lanes.
  FVM_INLINE static Ints load(const std::uint32_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }

  /// Loads as many bytes as there are lanes, each into a word.
  FVM_INLINE static Ints from_bytes(const std::uint8_t* from) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  }

  /// A node of the sparse8 layout in each lane.
  struct Nodes8 {
    Floats value;
    Ints word;
  };
  FVM_INLINE static Nodes8 fetch(const Sparse8View::Node* nodes, Ints at) {
    return apart(gather_pairs<sizeof *nodes>(nodes, _mm256_castsi256_si128(at)),
                 gather_pairs<sizeof *nodes>(nodes, _mm256_extracti128_si256(at, 1)));
  }
  FVM_INLINE static Nodes8 load(const Sparse8View::Node* from) {
    return apart(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)),
                 _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + kLanes / 2)));
  }
  FVM_INLINE static Nodes8 same(const Sparse8View::Node& node) {
    return {_mm256_set1_ps(node.value), all(node.word)};
  }

  /// Words in a register, looked up by the lowest bits of an index.
  struct WordTable {
    Ints words;
    WordTable() = default;
    explicit WordTable(const std::uint32_t* from) : words(load(from)) {}
    FVM_INLINE Ints operator[](Ints index) const { return _mm256_permutevar8x32_epi32(words, index); }
  };
  /// Nodes of the sparse8 layout in registers, looked up likewise.
  struct NodeTable {
    static constexpr std::uint32_t kNodes = 8;
    Floats values;
    WordTable words;
    NodeTable() = default;
    NodeTable(const float* from, const std::uint32_t* words_from)
        : values(_mm256_loadu_ps(from)), words(words_from) {}
    FVM_INLINE Nodes8 operator[](Ints index) const {
      return {_mm256_permutevar8x32_ps(values, index), words[index]};
    }
  };

  /// A node of the sparse4 layout in each lane.
  struct Nodes4 {
    Ints word;
  };
  FVM_INLINE static Nodes4 fetch(const Sparse4View::Node* nodes, Ints at) {
    return {gather_words<sizeof *nodes>(nodes, at)};
  }
  FVM_INLINE static Nodes4 load(const Sparse4View::Node* from) { return {load(&from->word)}; }

  struct Step {
    Ints at;
    bool walking;  ///< True if some lane was not at a leaf before the step.
  };

  /// Takes one step in each lane from `node` at `at`; a lane at a leaf stays there. value(vector, feature) returns what
  /// the lanes test.
  template <class Value>
  FVM_INLINE static Step step(const Nodes8& node, Ints at, unsigned vector, const Value& value) {
    const __m256i leaf = _mm256_srai_epi32(node.word, 31);
    const __m256i next = add(at, _mm256_and_si256(node.word, all(Sparse8View::kDistanceMask)));
    const __m256i stays = _mm256_or_si256(goes_left(node, vector, value), leaf);
    // Adds one, and -1 in lanes that go left or stay.
    return {add(add(next, all(1)), stays), _mm256_movemask_ps(_mm256_castsi256_ps(leaf)) != 0xff};
  }

  /// Takes one step in each lane where the children of node i are 2i and 2i + 1.
  template <class Value>
  FVM_INLINE static Ints step_down(const Nodes8& node, Ints number, unsigned vector, const Value& value) {
    return add(add(add(number, number), all(1)), goes_left(node, vector, value));
  }

  /// The values of a row, looked up by feature.
  struct RowValues {
    const float* row;
    FVM_INLINE RowValues(const float* from, std::size_t) : row(from) {}
    FVM_INLINE Floats operator[](Ints feature) const { return gather(row, feature); }
  };

  /// The codes of a row in registers: up to Parts x 16 columns. Only the lowest byte of a lane counts.
  template <unsigned Parts>
  struct CodesInRegisters {
    static constexpr unsigned kInPart = 16;
    __m256i parts[Parts];  ///< The codes of 16 columns in each half.

    FVM_INLINE CodesInRegisters(const std::uint8_t* from, std::size_t columns) {
      alignas(kInPart) std::uint8_t row[Parts * kInPart];
      for (std::size_t c = 0; c < columns; ++c) row[c] = from[c * kCodeRows];
      for (unsigned p = 0; p < Parts; ++p)
        parts[p] = _mm256_broadcastsi128_si256(
            _mm_load_si128(reinterpret_cast<const __m128i*>(row + std::size_t{p} * kInPart)));
    }
    FVM_INLINE Ints operator[](Ints column) const {
      // A column is found in one part; the others must give zero, which the shuffle does for an index whose highest bit
      // is set. The index of a column of an earlier part is negative. The index of a column of a later part becomes at
      // least 0x80 when 0x70 is added, which leaves the lowest four bits as they are.
      Ints found = all(0);
      for (unsigned p = 0; p < Parts; ++p) {
        Ints index = column;
        if (p != 0) index = _mm256_sub_epi8(index, _mm256_set1_epi8(static_cast<char>(p * kInPart)));
        if (p + 1 != Parts) index = _mm256_adds_epu8(index, _mm256_set1_epi8(0x70));
        found = _mm256_or_si256(found, _mm256_shuffle_epi8(parts[p], index));
      }
      return found;
    }
  };

  /// Calls visit.operator()<RowCodes>() with the type that suits the number of columns.
  template <class Visit>
  FVM_INLINE static void with_row_codes(std::size_t columns, const Visit& visit) {
    if (columns <= 32) return visit.template operator()<CodesInRegisters<2>>();
    if (columns <= 64) return visit.template operator()<CodesInRegisters<4>>();
    visit.template operator()<CodesInMemory<Avx2Lanes>>();
  }

  /// Returns in each lane the number of the leaf at which its walk has ended, or 0 if it has not.
  FVM_INLINE static Ints leaves(const Nodes4& node) {
    const Ints leaf = _mm256_cmpeq_epi32(_mm256_and_si256(node.word, all(0xff)), all(kNeverRight));
    return _mm256_and_si256(leaf, _mm256_srli_epi32(node.word, Sparse4View::kLeafShift));
  }

  template <class Value>
  FVM_INLINE static Step step(const Nodes4& node, Ints at, unsigned vector, const Value& value) {
    const Ints word = node.word;
    const Ints x =
        _mm256_and_si256(value(vector, _mm256_srli_epi32(word, Sparse4View::kColumnShift)), all(0xff));
    const Ints code = _mm256_and_si256(word, all(0xff));
    const Ints leaf = _mm256_cmpeq_epi32(code, all(kNeverRight));
    const Ints distance = _mm256_andnot_si256(leaf, _mm256_srli_epi32(word, Sparse4View::kDistanceShift));
    // The comparison gives -1 in lanes that go right.
    const Ints next = _mm256_sub_epi32(add(at, distance), _mm256_cmpgt_epi32(x, code));
    return {next, _mm256_movemask_ps(_mm256_castsi256_ps(leaf)) != 0xff};
  }

 private:
  /// Returns -1 in lanes that go left and 0 in others.
  template <class Value>
  FVM_INLINE static Ints goes_left(const Nodes8& node, unsigned vector, const Value& value) {
    const __m256i feature =
        _mm256_srli_epi32(_mm256_and_si256(node.word, all(kFeatureMask)), Sparse8View::kDistanceBits);
    const __m256 x = value(vector, feature);
    // Moves the flag to the sign bit and spreads it over the lane, which makes it a mask.
    const __m256 missing_left = _mm256_castsi256_ps(_mm256_srai_epi32(_mm256_slli_epi32(node.word, 1), 31));
    const __m256 less = _mm256_cmp_ps(x, node.value, _CMP_LT_OQ);
    return _mm256_castps_si256(
        _mm256_or_ps(less, _mm256_and_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q), missing_left)));
  }

  /// Separates the values and the words of eight nodes. The first four nodes are in `low`.
  FVM_INLINE static Nodes8 apart(__m256i low, __m256i high) {
    const __m256 a = _mm256_castsi256_ps(low), b = _mm256_castsi256_ps(high);
    const auto in_order = [](__m256 x) {
      return _mm256_permute4x64_epi64(_mm256_castps_si256(x), _MM_SHUFFLE(3, 1, 2, 0));
    };
    return {_mm256_castsi256_ps(in_order(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)))),
            in_order(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)))};
  }
};

}  // namespace forestvm::host
