// Walks of a row through the first eight levels of 64 trees with AVX-512: see byte_tests.hpp.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include <forestvm/core/platform.hpp>

#include "vm/host/walkers/byte_tests.hpp"

namespace forestvm::host {

class Avx512ByteTests {
  static constexpr unsigned kTrees = ByteTests::kTogether, kFour = ByteTests::kFour;
  static constexpr unsigned kWords = 32;  ///< Words of 16 bits in a vector, one for each tree.
  static constexpr unsigned kVectors = kTrees / kWords;

 public:
  static constexpr unsigned kEndVectors = kTrees / 16;
  static constexpr unsigned kCalls = 4;

  /// Sets `ends` to where walks of a row through `count` trees from `tree` on end, at most 64: their indices among the
  /// leaves or ends that begin with those of `tree`. Lanes beyond the last tree have some index of a tree behind it.
  /// row[columns] returns the row's codes in 64 columns. Calls beside() kCalls times, between the parts of the work.
  /// A part decides all its tests before the next reads any outcome: a vector of outcomes that were stored one by one
  /// cannot be loaded before they have left the store buffer.
  template <class Row, class Beside>
  FVM_INLINE static void find_ends(const ByteTests& tests, std::uint32_t tree, unsigned count, const Row& row,
                                   __m512i (&ends)[kEndVectors], const Beside& beside) {
    alignas(64) std::uint64_t outcomes[kTrees / kFour];
    const unsigned fours = (count + kFour - 1) / kFour;
    const ByteTests::High* const high = tests.high(tree);
    for (unsigned i = 0; i < fours; ++i)
      outcomes[i] =
          decide(row, _mm512_load_si512(high[i].columns.data()), _mm512_load_si512(high[i].codes.data()));
    beside();
    __m512i slots[kVectors];
    // The distance of each tree's block from the first tree's first block.
    alignas(64) std::uint16_t blocks[kTrees];
    for (unsigned i = 0; i < kVectors; ++i) {
      slots[i] = last_slots(outcomes, i);
      constexpr int kBlockBits = 5, kTreeBits = kBlockBits + ByteTests::kHalf;
      static_assert(sizeof(ByteTests::Low) == 1u << kBlockBits);
      _mm512_store_si512(blocks + i * kWords, _mm512_or_si512(_mm512_slli_epi16(trees(i), kTreeBits),
                                                              _mm512_slli_epi16(slots[i], kBlockBits)));
    }
    beside();
    const auto* const low = reinterpret_cast<const std::byte*>(tests.low(tree));
    const auto two_blocks = [&](unsigned first) {
      const auto load = [&](unsigned i) {
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(low + blocks[i]));
      };
      return _mm512_inserti64x4(_mm512_castsi256_si512(load(first)), load(first + 1), 1);
    };
    for (unsigned i = 0; i < fours; ++i) {
      const __m512i first = two_blocks(i * kFour), second = two_blocks(i * kFour + 2);
      constexpr int kEvens = 0x88, kOdds = 0xdd;  // a block has columns, then codes
      outcomes[i] = decide(row, _mm512_shuffle_i64x2(first, second, kEvens),
                           _mm512_shuffle_i64x2(first, second, kOdds));
    }
    beside();
    const __m128i spare_bits = _mm_cvtsi32_si128(static_cast<int>(tests.spare_levels()));
    const __m128i tree_bits = _mm_cvtsi32_si128(static_cast<int>(ByteTests::kLevels - tests.spare_levels()));
    for (unsigned i = 0; i < kVectors; ++i) {
      __m512i end;
      if (tests.has_leaves_in_blocks()) {
        const __m512i leaf = last_slots<ByteTests::kHalf - ByteTests::kMostSpareLevels>(outcomes, i);
        const __mmask32 is_last =
            _mm512_cmpeq_epi16_mask(leaf, _mm512_set1_epi16(ByteTests::kLeavesOfBlock - 1));
        const __m512i block = _mm512_srli_epi16(_mm512_load_si512(blocks + i * kWords), 2);  // in floats
        const __m512i one = _mm512_set1_epi16(1);                                            // see leaf_place
        end = _mm512_add_epi16(block, _mm512_mask_add_epi16(leaf, is_last, leaf, one));
        end = _mm512_add_epi16(end, one);
      } else {
        const __m512i slot =
            _mm512_or_si512(_mm512_slli_epi16(slots[i], ByteTests::kHalf), last_slots(outcomes, i));
        end = _mm512_or_si512(_mm512_sll_epi16(trees(i), tree_bits), _mm512_srl_epi16(slot, spare_bits));
      }
      ends[2 * i] = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(end));
      ends[2 * i + 1] = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(end, 1));
    }
    beside();
  }

 private:
  /// Returns a bit for each test: 1 if the row goes right.
  template <class Row>
  FVM_INLINE static std::uint64_t decide(const Row& row, __m512i columns, __m512i codes) {
    return _mm512_cmpgt_epu8_mask(row[columns], codes);
  }

  /// Returns the numbers of the trees in vector `i` of words.
  FVM_INLINE static __m512i trees(unsigned i) {
    const __m512i first =
        _mm512_cvtepu8_epi16(_mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
                                              18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31));
    return _mm512_add_epi16(first, _mm512_set1_epi16(static_cast<short>(i * kWords)));
  }

  /// Returns the slots below some levels at which walks through the trees of vector `i` arrive, counted from 0.
  template <unsigned Levels = ByteTests::kHalf>
  FVM_INLINE static __m512i last_slots(const std::uint64_t* outcomes, unsigned i) {
    const __m512i bits = _mm512_load_si512(outcomes + i * (kWords / kFour)), one = _mm512_set1_epi16(1);
    __m512i slots = one;
    for (unsigned level = 0; level < Levels; ++level) {
      constexpr int kAndOr = 0xea;  // (a & b) | c
      slots = _mm512_ternarylogic_epi32(_mm512_srlv_epi16(bits, slots), one, _mm512_add_epi16(slots, slots),
                                        kAndOr);
    }
    return _mm512_sub_epi16(slots, _mm512_set1_epi16(1 << Levels));
  }
};

}  // namespace forestvm::host
