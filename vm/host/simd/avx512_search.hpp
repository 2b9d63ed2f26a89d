// Ranks of 64 values on AVX-512, in four vectors: eight steps of the search by permutes of splitters in registers, the
// rest by gathers. encode_rows.hpp and ScalarSearch describe the functions that searches have.
#pragma once

#include <immintrin.h>

#include <forestvm/core/round_values.hpp>

#include "vm/host/derive_codes.hpp"
#include "vm/host/encode_rows.hpp"
#include "vm/host/picked_values.hpp"
#include "vm/host/simd/avx512_gathers.hpp"

namespace forestvm::host {

struct Avx512Search {
  /// The number of rows up to which encoding values one by one is faster.
  static constexpr unsigned kFewRows = 3;

  FVM_INLINE static void transpose(const float* rows, std::size_t stride, unsigned count, unsigned values,
                                   float* to) {
    for (unsigned r = 0; r < count; r += 16) {
      // Lanes beyond the last row repeat it.
      const float* from[16];
      for (unsigned i = 0; i < 16; ++i) from[i] = rows + std::min(r + i, count - 1) * stride;
      for (unsigned four = 0; four < values; four += 4) {
        __m512 x[4];  // the l-th four values of x[i] come from row 4 l + i
        for (unsigned i = 0; i < 4; ++i) {
          x[i] = _mm512_castps128_ps512(_mm_loadu_ps(from[i] + four));
          x[i] = _mm512_mask_broadcast_f32x4(x[i], 0x00f0, _mm_loadu_ps(from[4 + i] + four));
          x[i] = _mm512_mask_broadcast_f32x4(x[i], 0x0f00, _mm_loadu_ps(from[8 + i] + four));
          x[i] = _mm512_mask_broadcast_f32x4(x[i], 0xf000, _mm_loadu_ps(from[12 + i] + four));
        }
        const __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(x[0], x[1])),
                      b = _mm512_castps_pd(_mm512_unpacklo_ps(x[2], x[3])),
                      c = _mm512_castps_pd(_mm512_unpackhi_ps(x[0], x[1])),
                      d = _mm512_castps_pd(_mm512_unpackhi_ps(x[2], x[3]));
        float* const out = to + std::size_t{four} * kCodeRows + r;
        _mm512_store_ps(out, _mm512_castpd_ps(_mm512_unpacklo_pd(a, b)));
        _mm512_store_ps(out + kCodeRows, _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
        _mm512_store_ps(out + 2 * kCodeRows, _mm512_castpd_ps(_mm512_unpacklo_pd(c, d)));
        _mm512_store_ps(out + 3 * kCodeRows, _mm512_castpd_ps(_mm512_unpackhi_pd(c, d)));
      }
    }
  }

  FVM_INLINE static void encode(const FeatureSearch& search, const float* rows, std::size_t stride,
                                unsigned count, std::uint8_t* codes) {
    const float* const values = rows + search.feature;
    if (stride > kMaxStride) return encode_few(search, values, stride, count, codes);
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                  offsets = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(static_cast<int>(stride)));
    encode_all(search, count, codes, AsTheyAre(), [&](unsigned v) {
      const auto here = static_cast<__mmask16>(_bzhi_u32(0xffff, count > 16 * v ? count - 16 * v : 0));
      return _mm512_mask_i32gather_ps(_mm512_setzero_ps(), here, offsets, values + 16 * v * stride, 4);
    });
  }

  template <class Source = AsTheyAre>
  FVM_INLINE static void encode_few(const FeatureSearch& search, const float* values, std::size_t stride,
                                    unsigned count, std::uint8_t* codes, const Source& source = {}) {
    for (unsigned r = 0; r < count; ++r) encode_one(search, values[r * stride], r, source, codes);
  }

  /// Writes the codes of the value of row `r` of a block in all columns of a feature.
  template <class Source>
  FVM_INLINE static void encode_one(const FeatureSearch& search, float value, unsigned r,
                                    const Source& source, std::uint8_t* codes) {
    const __m512 x = _mm512_set1_ps(value);
    std::uint32_t rank = rank_of_value(search, [x](const float* node) {
      static_assert(FeatureSearch::kNode == 16);
      return static_cast<std::uint32_t>(
          _mm_popcnt_u32(_mm512_cmp_ps_mask(x, _mm512_load_ps(node), _CMP_GE_OQ)));
    });
    rank = settled_rank(source, search.feature, search.thresholds, r, value, rank);
    write_code(search, rank, value != value, codes + std::size_t{search.first_column} * kCodeRows + r);
  }

  template <class Source = AsTheyAre>
  FVM_INLINE static void encode_transposed(const FeatureSearch& search, const float* values, unsigned count,
                                           std::uint8_t* codes, const Source& source = {}) {
    if (count <= kFewRows) return encode_few(search, values, 1, count, codes, source);
    encode_all(search, count, codes, source,
               [values](unsigned v) { return _mm512_loadu_ps(values + 16 * v); });
  }

  /// Writes the codes of a block's 64 values, which need no alignment to vectors, in all columns of a feature.
  FVM_INLINE static void encode_block(const FeatureSearch& search, const float* values, std::uint8_t* codes) {
    encode_vectors<4>(search, kCodeRows, codes, AsTheyAre(),
                      [values](unsigned v) { return _mm512_loadu_ps(values + 16 * v); });
  }

  /// Rounds values, which need no alignment, up to float32. `to` is aligned to a vector and has room for whole
  /// vectors.
  FVM_INLINE static void round_up(const double* values, unsigned count, float* to) {
    for (unsigned v = 0; v < count; v += 8) {
      const auto here = static_cast<__mmask8>(_bzhi_u32(0xff, count - v));
      _mm256_store_ps(to + v, _mm512_cvt_roundpd_ps(_mm512_maskz_loadu_pd(here, values + v),
                                                    _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
    }
  }

  static constexpr bool kPicks = true;

  /// Picks values of `count` rows of `width` values, and rounds them up to float32. Rows are `stride` values apart;
  /// in `to` they are kPickedStride apart.
  FVM_INLINE static void pick(const PickStrip& strip, const double* rows, std::size_t stride,
                              std::size_t width, unsigned count, float* to) {
    if (width < kWindow) {
      const auto values = static_cast<unsigned>(width);
      const auto low = static_cast<__mmask8>(_bzhi_u32(0xff, values)),
                 high = static_cast<__mmask8>(_bzhi_u32(0xffff, values) >> 8);
      return pick_rows(strip.steps, rows, stride, count, to, [&](const double* from, __m512d& a, __m512d& b) {
        a = _mm512_maskz_loadu_pd(low, from);
        b = _mm512_maskz_loadu_pd(high, from + 8);
      });
    }
    pick_rows(strip.steps, rows, stride, count, to, [](const double* from, __m512d& a, __m512d& b) {
      a = _mm512_loadu_pd(from);
      b = _mm512_loadu_pd(from + 8);
    });
  }

  /// Does what a RoundFunction does.
  FVM_INLINE static std::uint64_t round_down(const RoundTask& task) {
    return task.picked ? round_down<true>(task) : round_down<false>(task);
  }

  /// Takes a copy of the task, because compilers would read the task again after each store.
  template <bool kPicked>
  FVM_INLINE static std::uint64_t round_down(const RoundTask task) {
    std::uint64_t found = 0;
    for (std::uint32_t i = 0; i < task.count; i += 16) {
      const std::uint32_t here = _bzhi_u32(0xffff, task.count - i);
      const auto all = static_cast<__mmask16>(here);
      const __m512i features = _mm512_maskz_loadu_epi32(all, task.features + i);
      const auto eight = [&](__mmask8 some, unsigned first, __m256i numbers) {
        if constexpr (kPicked)
          return _mm512_mask_i32gather_pd(_mm512_setzero_pd(), some, numbers, task.values, 8);
        return _mm512_maskz_loadu_pd(some, task.values + first);
      };
      const __m512d low = eight(static_cast<__mmask8>(here & 0xff), i, _mm512_castsi512_si256(features)),
                    high = eight(static_cast<__mmask8>(here >> 8), i + 8,
                                 _mm512_extracti64x4_epi64(features, 1));
      constexpr int kDown = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC,
                    kUp = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
      const __m512 down = joined(_mm512_cvt_roundpd_ps(low, kDown), _mm512_cvt_roundpd_ps(high, kDown));
      const __m512i up =
          _mm512_castps_si512(joined(_mm512_cvt_roundpd_ps(low, kUp), _mm512_cvt_roundpd_ps(high, kUp)));
      if constexpr (kPicked)
        _mm512_mask_i32scatter_ps(task.out, all, features, down, 4);
      else
        _mm512_mask_storeu_ps(task.out + i, all, down);
      __mmask16 between = _mm512_mask_cmpneq_epi32_mask(all, _mm512_castps_si512(down), up);
      if (!kPicked && task.run_tests != nullptr) {
        const auto test = [&](RunTests one) {
          return _mm512_maskz_loadu_epi32(all, task.run_tests + one * task.run_stride + i);
        };
        between =
            _mm512_mask_testn_epi32_mask(between, _mm512_xor_si512(up, test(kPattern)), test(kAgreeing));
        const __m512i number =
            _mm512_srli_epi32(_mm512_mullo_epi32(up, _mm512_set1_epi32(static_cast<int>(kBoundFactor))), 27);
        between = _mm512_mask_test_epi32_mask(between, _mm512_sllv_epi32(_mm512_set1_epi32(1), number),
                                              test(kListed));
        if (between == 0) continue;
      }
      const __m512i h = _mm512_and_si512(hash_of_bounds(features, up),
                                         _mm512_set1_epi32(static_cast<int>(task.filter_mask)));
      const __m512i words =
          _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), all, _mm512_srli_epi32(h, 5), task.filter, 4);
      const __m512i bit = _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(h, _mm512_set1_epi32(31)));
      found |= std::uint64_t{_mm512_mask_test_epi32_mask(between, words, bit)} << i;
    }
    return found;
  }

  /// Copies up to 64 values, which need no alignment, as float32. Values without a bit in `present`, whose memory
  /// is not read, become NaN, and so does what lies behind the last value.
  FVM_INLINE static void load_values(const float* values, unsigned, std::uint64_t present, float* to) {
    for (unsigned v = 0; v < kCodeRows; v += 16)
      _mm512_store_ps(to + v,
                      _mm512_mask_loadu_ps(_mm512_set1_ps(__builtin_nanf("")),
                                           static_cast<__mmask16>(present >> v & 0xffff), values + v));
  }
  FVM_INLINE static void load_values(const double* values, unsigned, std::uint64_t present, float* to) {
    const __m256 none = _mm256_set1_ps(__builtin_nanf(""));
    for (unsigned v = 0; v < kCodeRows; v += 8) {
      const auto here = static_cast<__mmask8>(present >> v & 0xff);
      _mm256_store_ps(to + v, _mm512_mask_cvtpd_ps(none, here, _mm512_maskz_loadu_pd(here, values + v)));
    }
  }

  /// Does what write_outcomes in derive_codes.hpp does.
  FVM_INLINE static void write_outcomes(const KeyPart& test, const float* values, unsigned rows,
                                        std::uint8_t* out) {
    const __m512i operands = _mm512_set1_epi32(static_cast<int>(test.operand));
    const __m512 borders = _mm512_castsi512_ps(operands);
    const auto put = [=](auto compare) {
      for (unsigned r = 0; r < rows; r += 16)
        _mm_store_si128(reinterpret_cast<__m128i*>(out + r),
                        _mm_movm_epi8(compare(_mm512_load_ps(values + r))));
    };
    if (test.kind == KeyPartKind::HasCode)
      put([=](__m512 x) { return _mm512_cmpeq_epi32_mask(_mm512_castps_si512(x), operands); });
    else if (test.kind == KeyPartKind::Above)
      put([=](__m512 x) { return _mm512_cmp_ps_mask(x, borders, _CMP_GT_OQ); });
    else
      put([=](__m512 x) { return _mm512_cmp_ps_mask(x, borders, _CMP_NLE_UQ); });
  }

  /// Writes the codes of a table at `count` indices, a multiple of 16.
  FVM_INLINE static void look_up(const CodeTable& table, const std::uint32_t* indices, unsigned count,
                                 std::uint8_t* codes) {
    if (table.entries <= 128) return look_up_small<1>(table, indices, count, codes);
    if (table.entries <= kSmallTable) return look_up_small<2>(table, indices, count, codes);
    const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(std::bit_width(table.columns.size() - 1)));
    for (unsigned i = 0; i < count; i += 16) {
      const __m512i entries = _mm512_sll_epi32(_mm512_load_si512(indices + i), shift);
      __m512i words = gather_words<1>(table.codes, entries);
      for (const std::uint32_t column : table.columns) {
        put_codes(column, i, _mm512_cvtepi32_epi8(words), codes);
        words = _mm512_srli_epi32(words, 8);
      }
    }
  }

 private:
  /// Stores the codes of 16 rows in a column.
  FVM_INLINE static void put_codes(std::uint32_t column, unsigned row, __m128i of_rows, std::uint8_t* codes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + std::size_t{column} * kCodeRows + row), of_rows);
  }

  /// Looks up a table of one column and at most 128 entries for each of `Pairs` pairs of registers.
  template <unsigned Pairs>
  FVM_INLINE static void look_up_small(const CodeTable& table, const std::uint32_t* indices, unsigned count,
                                       std::uint8_t* codes) {
    __m512i parts[2 * Pairs];
    for (unsigned i = 0; i < 2 * Pairs; ++i) parts[i] = _mm512_loadu_si512(table.codes + 64 * i);
    for (unsigned i = 0; i < count; i += 16) {
      const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_load_si512(indices + i));
      const __m512i at = _mm512_castsi128_si512(bytes);
      const auto pair = [&](unsigned p) {
        return _mm512_castsi512_si128(_mm512_permutex2var_epi8(parts[2 * p], at, parts[2 * p + 1]));
      };
      __m128i found = pair(0);
      if constexpr (Pairs == 2) found = _mm_mask_blend_epi8(_mm_movepi8_mask(bytes), found, pair(1));
      put_codes(table.columns[0], i, found, codes);
    }
  }

  FVM_INLINE static __m512 joined(__m256 low, __m256 high) {
    return _mm512_castpd_ps(
        _mm512_insertf64x4(_mm512_castps_pd(_mm512_castps256_ps512(low)), _mm256_castps_pd(high), 1));
  }

  /// Returns hash_of_bound of each feature and number.
  FVM_INLINE static __m512i hash_of_bounds(__m512i features, __m512i up) {
    const auto times = [](__m512i x, std::uint32_t factor) {
      return _mm512_mullo_epi32(x, _mm512_set1_epi32(static_cast<int>(factor)));
    };
    __m512i h = _mm512_xor_si512(times(up, kBoundFactor), times(features, kFeatureFactor));
    h = times(_mm512_xor_si512(h, _mm512_srli_epi32(h, 15)), kMixFactor);
    return _mm512_xor_si512(h, _mm512_srli_epi32(h, 13));
  }

  /// Picks values of four rows at a time, so that a step is loaded once for all of them.
  template <class Load>
  FVM_INLINE static void pick_rows(std::span<const PickStep> steps, const double* rows, std::size_t stride,
                                   unsigned count, float* to, const Load& load) {
    unsigned r = 0;
    for (; r + 4 <= count; r += 4)
      pick_steps<4>(steps, rows + r * stride, stride, to + std::size_t{r} * kPickedStride, load);
    for (; r < count; ++r)
      pick_steps<1>(steps, rows + r * stride, stride, to + std::size_t{r} * kPickedStride, load);
  }

  template <unsigned kRows, class Load>
  FVM_INLINE static void pick_steps(std::span<const PickStep> steps, const double* rows, std::size_t stride,
                                    float* to, const Load& load) {
    for (const PickStep& step : steps) {
      const __m512i indices = _mm512_loadu_si512(step.indices);
      for (unsigned r = 0; r < kRows; ++r) {
        __m512d a, b;
        load(rows + r * stride + step.first, a, b);
        _mm256_storeu_ps(to + r * kPickedStride,
                         _mm512_cvt_roundpd_ps(_mm512_permutex2var_pd(a, indices, b),
                                               _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
      }
      to += step.count;
    }
  }

  /// The largest stride with which values are gathered, because offsets have 32 bits.
  static constexpr std::size_t kMaxStride = std::size_t{1} << 26;

  /// Encodes `count` values. load(v) returns values 16 v … 16 v + 15; values beyond `count` may be any.
  template <class Source, class Load>
  FVM_INLINE static void encode_all(const FeatureSearch& search, unsigned count, std::uint8_t* codes,
                                    const Source& source, const Load& load) {
    if (count <= 16)
      encode_vectors<1>(search, count, codes, source, load);
    else if (count <= 32)
      encode_vectors<2>(search, count, codes, source, load);
    else
      encode_vectors<4>(search, count, codes, source, load);
  }

  template <unsigned kVectors, class Source, class Load>
  FVM_INLINE static void encode_vectors(const FeatureSearch& search, unsigned count, std::uint8_t* codes,
                                        const Source& source, const Load& load) {
    __m512 x[kVectors], reached[kVectors];
    for (unsigned v = 0; v < kVectors; ++v) x[v] = load(v);
    __m512i rank[kVectors];
    find(search, x, rank, reached);
    if constexpr (Source::kRounded)
      if (source.values != nullptr) settle(search, x, reached, count, source, rank);
    std::uint8_t* to = codes + std::size_t{search.first_column} * kCodeRows;
    for (const ColumnDesc& column : search.columns) {
      write(x, rank, column, count, to);
      to += kCodeRows;
    }
  }

  /// Settles the ranks of values that are equal to the threshold they have reached: see RoundedUp.
  template <unsigned kVectors>
  FVM_INLINE static void settle(const FeatureSearch& search, const __m512 (&x)[kVectors],
                                const __m512 (&reached)[kVectors], unsigned count, const RoundedUp& source,
                                __m512i (&rank)[kVectors]) {
    std::uint64_t ties = 0;
    for (unsigned v = 0; v < kVectors; ++v)
      ties |= std::uint64_t{_mm512_cmp_ps_mask(x[v], reached[v], _CMP_EQ_OQ)} << 16 * v;
    ties = _bzhi_u64(ties, count);
    if (__builtin_expect(ties == 0, 1)) return;
    alignas(64) std::uint32_t ranks[16 * kVectors];
    for (unsigned v = 0; v < kVectors; ++v) _mm512_store_si512(ranks + 16 * v, rank[v]);
    for (; ties != 0; ties &= ties - 1) {
      const auto r = static_cast<unsigned>(_tzcnt_u64(ties));
      ranks[r] = source.rank(search.feature, r, search.thresholds[ranks[r] - 1], ranks[r]);
    }
    for (unsigned v = 0; v < kVectors; ++v) rank[v] = _mm512_load_si512(ranks + 16 * v);
  }

  template <unsigned kVectors>
  FVM_INLINE static void write(const __m512 (&x)[kVectors], const __m512i (&rank)[kVectors],
                               const ColumnDesc& column, unsigned count, std::uint8_t* to) {
    __m512i above[4];
    const __m512i first = _mm512_set1_epi32(static_cast<int>(column.first));
    for (unsigned v = 0; v < 4; ++v) {
      above[v] = rank[v % kVectors];
      if (column.first != 0) above[v] = _mm512_sub_epi32(_mm512_max_epu32(above[v], first), first);
    }
    // Puts the codes of each vector side by side. Packing leaves four codes of each vector, then the next four of each.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i most = _mm512_set1_epi16(static_cast<short>(column.count));
    const __m512i low = _mm512_min_epu16(_mm512_packus_epi32(above[0], above[1]), most);
    const __m512i high =
        kVectors <= 2 ? low : _mm512_min_epu16(_mm512_packus_epi32(above[2], above[3]), most);
    __m512i codes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high));
    if (column.missing_highest != 0) {
      __mmask16 none[4];
      for (unsigned v = 0; v < 4; ++v)
        none[v] = v < kVectors ? _mm512_cmp_ps_mask(x[v % kVectors], x[v % kVectors], _CMP_UNORD_Q) : 0;
      const __mmask64 missing =
          _mm512_kunpackd(_mm512_kunpackw(none[3], none[2]), _mm512_kunpackw(none[1], none[0]));
      codes = _mm512_mask_mov_epi8(codes, missing, _mm512_set1_epi8(static_cast<char>(column.count)));
    }
    _mm512_mask_storeu_epi8(to, _bzhi_u64(~std::uint64_t{0}, count), codes);
  }

  /// Finds the rank of each value, and the last threshold that it has reached; NaN if it has reached none.
  template <unsigned kVectors>
  FVM_INLINE static void find(const FeatureSearch& search, const __m512 (&x)[kVectors],
                              __m512i (&rank)[kVectors], __m512 (&reached)[kVectors]) {
    // During the search ranks have a leading one: they are the index in `splitters` where the next step finds its
    // splitter.
    search_splitters(search, x, rank, reached);
    const __m512i one =
        _mm512_set1_epi32(static_cast<int>(1u << std::min(search.bits, FeatureSearch::kSplitSteps)));
    for (__m512i& r : rank) r = _mm512_xor_si512(r, one);
    if (search.bits <= FeatureSearch::kSplitSteps) return;
    const unsigned by_gather = search.bits - FeatureSearch::kSplitSteps;
    for (__m512i& r : rank) r = _mm512_slli_epi32(r, by_gather);
    for (unsigned step = (1u << by_gather) / 2; step != 0; step /= 2) {
      const __m512i more = _mm512_set1_epi32(static_cast<int>(step));
      for (unsigned v = 0; v < kVectors; ++v) {
        const __m512 at = gather_floats<4>(search.thresholds + step - 1, rank[v]);
        const __mmask16 right = _mm512_cmp_ps_mask(x[v], at, _CMP_GE_OQ);
        rank[v] = _mm512_mask_add_epi32(rank[v], right, rank[v], more);
        reached[v] = _mm512_mask_mov_ps(reached[v], right, at);
      }
    }
  }

  template <unsigned kVectors>
  FVM_INLINE static void search_splitters(const FeatureSearch& search, const __m512 (&x)[kVectors],
                                          __m512i (&rank)[kVectors], __m512 (&reached)[kVectors]) {
    const float* const at = search.splitters;
    const __m512 s0 = _mm512_loadu_ps(at), s1 = _mm512_loadu_ps(at + 16);
    __mmask16 upper[kVectors];
    const __m512 top = _mm512_set1_ps(at[1]);
    for (unsigned v = 0; v < kVectors; ++v) {
      upper[v] = _mm512_cmp_ps_mask(x[v], top, _CMP_GE_OQ);
      rank[v] = _mm512_mask_mov_epi32(_mm512_set1_epi32(2), upper[v], _mm512_set1_epi32(3));
      reached[v] = _mm512_mask_mov_ps(_mm512_set1_ps(__builtin_nanf("")), upper[v], top);
    }
    if (search.bits == 1) return;
    const __m512 s2lo = _mm512_set1_ps(at[2]), s2hi = _mm512_set1_ps(at[3]);
    for (unsigned v = 0; v < kVectors; ++v)
      narrow(x[v], rank[v], reached[v], _mm512_mask_blend_ps(upper[v], s2lo, s2hi));
    if (search.bits == 2) return;
    for (unsigned v = 0; v < kVectors; ++v)
      narrow(x[v], rank[v], reached[v], _mm512_permutexvar_ps(rank[v], s0));
    if (search.bits == 3) return;
    for (unsigned v = 0; v < kVectors; ++v)
      narrow(x[v], rank[v], reached[v], _mm512_permutexvar_ps(rank[v], s0));
    if (search.bits == 4) return;
    for (unsigned v = 0; v < kVectors; ++v)
      narrow(x[v], rank[v], reached[v], _mm512_permutexvar_ps(rank[v], s1));
    if (search.bits == 5) return;
    const __m512 s2 = _mm512_loadu_ps(at + 32), s3 = _mm512_loadu_ps(at + 48);
    for (unsigned v = 0; v < kVectors; ++v)
      narrow(x[v], rank[v], reached[v], _mm512_permutex2var_ps(s2, rank[v], s3));
    if (search.bits == 6) return;
    const __m512 s4 = _mm512_loadu_ps(at + 64), s5 = _mm512_loadu_ps(at + 80), s6 = _mm512_loadu_ps(at + 96),
                 s7 = _mm512_loadu_ps(at + 112);
    for (unsigned v = 0; v < kVectors; ++v)
      narrow(x[v], rank[v], reached[v],
             _mm512_mask_blend_ps(upper[v], _mm512_permutex2var_ps(s4, rank[v], s5),
                                  _mm512_permutex2var_ps(s6, rank[v], s7)));
    if (search.bits == 7) return;
    __m512 s[8];
    for (unsigned i = 0; i < 8; ++i) s[i] = _mm512_loadu_ps(at + 128 + 16 * i);
    for (unsigned v = 0; v < kVectors; ++v) {
      const __mmask16 right = _mm512_test_epi32_mask(rank[v], _mm512_set1_epi32(32));
      const __m512 lo = _mm512_mask_blend_ps(right, _mm512_permutex2var_ps(s[0], rank[v], s[1]),
                                             _mm512_permutex2var_ps(s[2], rank[v], s[3])),
                   hi = _mm512_mask_blend_ps(right, _mm512_permutex2var_ps(s[4], rank[v], s[5]),
                                             _mm512_permutex2var_ps(s[6], rank[v], s[7]));
      narrow(x[v], rank[v], reached[v], _mm512_mask_blend_ps(upper[v], lo, hi));
    }
  }

  /// Takes one more step of the search.
  FVM_INLINE static void narrow(__m512 x, __m512i& rank, __m512& reached, __m512 splitter) {
    const __m512i twice = _mm512_add_epi32(rank, rank);
    const __mmask16 right = _mm512_cmp_ps_mask(x, splitter, _CMP_GE_OQ);
    rank = _mm512_mask_add_epi32(twice, right, twice, _mm512_set1_epi32(1));
    reached = _mm512_mask_mov_ps(reached, right, splitter);
  }
};

}  // namespace forestvm::host
