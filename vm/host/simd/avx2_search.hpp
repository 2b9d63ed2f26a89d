// Ranks of values on AVX2, eight to a vector: seven steps of the search by permutes of splitters, the rest by gathers.
// The eight vectors of a block are in flight together, because each step waits long for the one before.
#pragma once

#include <immintrin.h>

#include <bit>

#include "vm/host/picked_values.hpp"
#include "vm/host/simd/avx2_gathers.hpp"
#include "vm/host/simd/baseline_search.hpp"

namespace forestvm::host {

struct Avx2Search {
  static constexpr unsigned kLanes = 8;
  static constexpr unsigned kFewRows = kLanes - 1;
  /// The most steps of a search whose splitters are found by permutes. An eighth step would take as long as a gather.
  static constexpr unsigned kPermuteSteps = 7;

  FVM_INLINE static void transpose(const float* rows, std::size_t stride, unsigned count, unsigned values,
                                   float* to) {
    for (unsigned r = 0; r < count; r += kLanes) {
      const float* from[kLanes];
      for (unsigned i = 0; i < kLanes; ++i) from[i] = rows + std::min(r + i, count - 1) * stride;
      for (unsigned four = 0; four < values; four += 4) {
        __m256 x[4];  // the l-th four values of x[i] come from row 4 l + i
        for (unsigned i = 0; i < 4; ++i)
          x[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from[i] + four)),
                                      _mm_loadu_ps(from[4 + i] + four), 1);
        const __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(x[0], x[1])),
                      b = _mm256_castps_pd(_mm256_unpacklo_ps(x[2], x[3])),
                      c = _mm256_castps_pd(_mm256_unpackhi_ps(x[0], x[1])),
                      d = _mm256_castps_pd(_mm256_unpackhi_ps(x[2], x[3]));
        float* const out = to + std::size_t{four} * kCodeRows + r;
        _mm256_store_ps(out, _mm256_castpd_ps(_mm256_unpacklo_pd(a, b)));
        _mm256_store_ps(out + kCodeRows, _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
        _mm256_store_ps(out + 2 * kCodeRows, _mm256_castpd_ps(_mm256_unpacklo_pd(c, d)));
        _mm256_store_ps(out + 3 * kCodeRows, _mm256_castpd_ps(_mm256_unpackhi_pd(c, d)));
      }
    }
  }

  FVM_INLINE static void encode(const FeatureSearch& search, const float* rows, std::size_t stride,
                                unsigned count, std::uint8_t* codes) {
    const float* const values = rows + search.feature;
    const unsigned whole = stride > kMaxStride ? 0 : count / kLanes * kLanes;
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                  offsets = _mm256_mullo_epi32(lanes, _mm256_set1_epi32(static_cast<int>(stride)));
    encode_all(search, whole, codes, AsTheyAre(),
               [&](unsigned r) { return gather_floats<4>(values + r * stride, offsets); });
    encode_each(search, values, stride, whole, count, codes, AsTheyAre());
  }

  template <class Source>
  FVM_INLINE static void encode_few(const FeatureSearch& search, const float* values, std::size_t stride,
                                    unsigned count, std::uint8_t* codes, const Source& source) {
    encode_each(search, values, stride, 0, count, codes, source);
  }

  /// Writes the codes of the value of row `r` of a block in all columns of a feature.
  template <class Source>
  FVM_INLINE static void encode_one(const FeatureSearch& search, float value, unsigned r,
                                    const Source& source, std::uint8_t* codes) {
    const __m256 x = _mm256_set1_ps(value);
    std::uint32_t rank = rank_of_value(search, [x](const float* node) {
      static_assert(FeatureSearch::kNode == 2 * kLanes);
      const __m256 low = _mm256_cmp_ps(x, _mm256_load_ps(node), _CMP_GE_OQ),
                   high = _mm256_cmp_ps(x, _mm256_load_ps(node + kLanes), _CMP_GE_OQ);
      const auto bits = static_cast<unsigned>(_mm256_movemask_ps(low) | _mm256_movemask_ps(high) << kLanes);
      return static_cast<std::uint32_t>(_mm_popcnt_u32(bits));
    });
    rank = settled_rank(source, search.feature, search.thresholds, r, value, rank);
    write_code(search, rank, value != value, codes + std::size_t{search.first_column} * kCodeRows + r);
  }

  template <class Source = AsTheyAre>
  FVM_INLINE static void encode_transposed(const FeatureSearch& search, const float* values, unsigned count,
                                           std::uint8_t* codes, const Source& source = {}) {
    const unsigned whole = count / kLanes * kLanes;
    encode_all(search, whole, codes, source, [values](unsigned r) { return _mm256_loadu_ps(values + r); });
    encode_each(search, values, 1, whole, count, codes, source);
  }

  static constexpr bool kPicks = true;

  /// Picks values of `count` rows, and rounds them up to float32. Rows are `stride` values apart; in `to` they are
  /// kPickedStride apart.
  FVM_INLINE static void pick(const PickStrip& strip, const double* rows, std::size_t stride, std::size_t,
                              unsigned count, float* to) {
    const RoundingUp rounding;
    unsigned r = 0;
    for (; r + 4 <= count; r += 4)
      pick_rows<4>(strip, rounding, rows + r * stride, stride, to + std::size_t{r} * kPickedStride);
    for (; r < count; ++r)
      pick_rows<1>(strip, rounding, rows + r * stride, stride, to + std::size_t{r} * kPickedStride);
  }

  /// Rounds up to 64 values, which need no alignment, up to float32.
  FVM_INLINE static void round_up(const double* values, unsigned count, float* to) {
    ScalarSearch::round_up(values, count, to);
  }

  /// Does what a RoundFunction does.
  FVM_INLINE static std::uint64_t round_down(const RoundTask& task) {
    const std::uint32_t whole = task.count / kLanes * kLanes;
    std::uint64_t found = 0;
    for (std::uint32_t i = 0; i < whole; i += kLanes) found |= std::uint64_t{round_eight(task, i)} << i;
    if (whole == task.count) return found;
    RoundTask rest = task;
    rest.count -= whole;
    rest.features += whole;
    if (!task.picked) {
      rest.values += whole;
      rest.out += whole;
    }
    return found | forestvm::round_down(rest) << whole;
  }

  /// Writes the codes of a block's 64 values, which need no alignment to vectors, in all columns of a feature.
  FVM_INLINE static void encode_block(const FeatureSearch& search, const float* values, std::uint8_t* codes) {
    encode_all(search, kCodeRows, codes, AsTheyAre(),
               [values](unsigned r) { return _mm256_loadu_ps(values + r); });
  }

  /// Copies up to 64 values, which need no alignment, as float32. Values without a bit in `present` become NaN.
  template <class Value>
  FVM_INLINE static void load_values(const Value* values, unsigned count, std::uint64_t present, float* to) {
    const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    unsigned r = 0;
    for (; r + kLanes <= count; r += kLanes) {
      const auto byte = static_cast<int>(present >> r & 0xff);
      const __m256i here = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(byte), bits), bits);
      _mm256_store_ps(to + r, _mm256_blendv_ps(_mm256_set1_ps(__builtin_nanf("")), eight(values + r),
                                               _mm256_castsi256_ps(here)));
    }
    for (; r < count; ++r) to[r] = ScalarSearch::value_at(values, r, present);
  }

 private:
  /// Returns the low halves of the elements of two vectors.
  FVM_INLINE static __m256i low_halves(__m256d first, __m256d second) {
    const __m256 low = _mm256_shuffle_ps(_mm256_castpd_ps(first), _mm256_castpd_ps(second), 0x88);
    return _mm256_permute4x64_epi64(_mm256_castps_si256(low), 0xd8);
  }

  /// Does what forestvm::round_down does, for the eight values from number `i` on.
  FVM_INLINE static std::uint32_t round_eight(const RoundTask& task, std::uint32_t i) {
    const auto times = [](__m256i x, std::uint32_t factor) {
      return _mm256_mullo_epi32(x, _mm256_set1_epi32(static_cast<int>(factor)));
    };
    const auto* const numbers = reinterpret_cast<const __m128i*>(task.features + i);
    const auto four = [&](unsigned half) {
      if (!task.picked) return _mm256_loadu_pd(task.values + i + 4 * half);
      return _mm256_mask_i32gather_pd(_mm256_setzero_pd(), task.values, _mm_loadu_si128(numbers + half),
                                      _mm256_castsi256_pd(_mm256_set1_epi64x(-1)), 8);
    };
    const __m256d a = four(0), b = four(1);
    const __m128 nearest_a = _mm256_cvtpd_ps(a), nearest_b = _mm256_cvtpd_ps(b);
    const __m256d wide_a = _mm256_cvtps_pd(nearest_a), wide_b = _mm256_cvtps_pd(nearest_b);
    const __m256i above =
        low_halves(_mm256_cmp_pd(wide_a, a, _CMP_GT_OQ), _mm256_cmp_pd(wide_b, b, _CMP_GT_OQ));
    __m256i between =
        low_halves(_mm256_cmp_pd(wide_a, a, _CMP_NEQ_OQ), _mm256_cmp_pd(wide_b, b, _CMP_NEQ_OQ));
    const __m256i bits = _mm256_castps_si256(_mm256_set_m128(nearest_b, nearest_a));
    // Bits of negative numbers ascend as the numbers descend.
    const __m256i step = _mm256_or_si256(_mm256_srai_epi32(bits, 31), _mm256_set1_epi32(1));
    const __m256i down = _mm256_sub_epi32(bits, _mm256_and_si256(step, above));
    const __m256i up = _mm256_add_epi32(down, _mm256_and_si256(step, between));
    if (task.picked) {
      std::uint32_t rounded[kLanes];
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(rounded), down);
      for (std::uint32_t k = 0; k < kLanes; ++k)
        task.out[task.features[i + k]] = std::bit_cast<float>(rounded[k]);
    } else {
      _mm256_storeu_ps(task.out + i, _mm256_castsi256_ps(down));
    }
    if (task.run_tests != nullptr) {
      const auto test = [&](RunTests one) {
        const std::uint32_t* const from = task.run_tests + one * task.run_stride + i;
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      };
      const __m256i differing = _mm256_and_si256(_mm256_xor_si256(up, test(kPattern)), test(kAgreeing));
      const __m256i number = _mm256_srli_epi32(times(up, kBoundFactor), 27);
      const __m256i listed = _mm256_and_si256(_mm256_srlv_epi32(test(kListed), number), between);
      between = _mm256_and_si256(listed, _mm256_cmpeq_epi32(differing, _mm256_setzero_si256()));
      if (_mm256_testz_si256(between, _mm256_set1_epi32(1)) != 0) return 0;
    }
    const __m256i features = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(task.features + i));
    __m256i h = _mm256_xor_si256(times(up, kBoundFactor), times(features, kFeatureFactor));
    h = times(_mm256_xor_si256(h, _mm256_srli_epi32(h, 15)), kMixFactor);
    h = _mm256_and_si256(_mm256_xor_si256(h, _mm256_srli_epi32(h, 13)),
                         _mm256_set1_epi32(static_cast<int>(task.filter_mask)));
    const __m256i words = gather_words<4>(task.filter, _mm256_srli_epi32(h, 5));
    const __m256i bit = _mm256_srlv_epi32(words, _mm256_and_si256(h, _mm256_set1_epi32(31)));
    const __m256i hit = _mm256_slli_epi32(_mm256_and_si256(bit, between), 31);
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(hit)));
  }

  /// Sets the calling thread's rounding mode to upward while it exists. It converts by volatile assembly, whose order
  /// compilers keep. Intrinsics could be moved out of its lifetime, because compilers do not know that they depend on
  /// the mode.
  class RoundingUp {
   public:
    RoundingUp() {
      __asm__ volatile("vstmxcsr %0" : "=m"(saved_));
      const unsigned up = (saved_ & ~kModes) | kUp;
      __asm__ volatile("vldmxcsr %0" : : "m"(up));
    }
    ~RoundingUp() { __asm__ volatile("vldmxcsr %0" : : "m"(saved_)); }
    RoundingUp(const RoundingUp&) = delete;
    RoundingUp& operator=(const RoundingUp&) = delete;

    FVM_INLINE __m128 convert(__m256d values) const {
      __m128 up;
      __asm__ volatile("vcvtpd2psy %1, %0" : "=x"(up) : "x"(values));
      return up;
    }

   private:
    static constexpr unsigned kModes = 0x6000, kUp = 0x4000;
    unsigned saved_;
  };

  /// Loads a value that may lie at any address. _mm_load_sd is the same instruction, but its address must be aligned as
  /// a double's.
  FVM_INLINE static __m128d load_low(const double* from) {
    double value;
    __builtin_memcpy(&value, static_cast<const void*>(from), sizeof value);
    return _mm_set_sd(value);
  }

  /// Picks values of kRows rows together, so that the numbers of features are loaded once for all of them.
  template <unsigned kRows>
  FVM_INLINE static void pick_rows(const PickStrip& strip, const RoundingUp& rounding, const double* rows,
                                   std::size_t stride, float* to) {
    const std::size_t last = strip.features.size() - 1;
    for (std::size_t i = 0; i <= last; i += 4) {
      std::size_t at[4];
      for (std::size_t k = 0; k < 4; ++k) at[k] = strip.features[std::min(i + k, last)].feature;
      for (unsigned r = 0; r < kRows; ++r) {
        const double* const row = rows + r * stride;
        const __m128d low = _mm_loadh_pd(load_low(row + at[0]), row + at[1]),
                      high = _mm_loadh_pd(load_low(row + at[2]), row + at[3]);
        _mm_storeu_ps(to + r * kPickedStride + i, rounding.convert(_mm256_set_m128d(high, low)));
      }
    }
  }

  /// Loads eight values as float32.
  FVM_INLINE static __m256 eight(const float* values) { return _mm256_loadu_ps(values); }
  FVM_INLINE static __m256 eight(const double* values) {
    return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd(values + 4)),
                           _mm256_cvtpd_ps(_mm256_loadu_pd(values)));
  }

  /// The largest stride with which values are gathered, because offsets have 32 bits.
  static constexpr std::size_t kMaxStride = std::size_t{1} << 27;

  /// Encodes `whole` rows, a multiple of kLanes. load(r) returns the values of eight rows from r on.
  template <class Source, class Load>
  FVM_INLINE static void encode_all(const FeatureSearch& search, unsigned whole, std::uint8_t* codes,
                                    const Source& source, const Load& load) {
    unsigned r = 0;
    for (; r + kCodeRows <= whole; r += kCodeRows) encode_vectors<8>(search, r, codes, source, load);
    for (; r + 4 * kLanes <= whole; r += 4 * kLanes) encode_vectors<4>(search, r, codes, source, load);
    for (; r < whole; r += kLanes) encode_vectors<1>(search, r, codes, source, load);
  }

  /// Encodes the rows of `Vectors` vectors from row `first` on.
  template <unsigned Vectors, class Source, class Load>
  FVM_INLINE static void encode_vectors(const FeatureSearch& search, unsigned first, std::uint8_t* codes,
                                        const Source& source, const Load& load) {
    __m256 x[Vectors], tie[Vectors];
    __m256i rank[Vectors];
    for (unsigned v = 0; v < Vectors; ++v) x[v] = load(first + v * kLanes);
    search_splitters(search, x, rank, tie);
    // Until here ranks had a leading one, which is taken away.
    const unsigned by_permute = std::min(search.bits, kPermuteSteps), by_gather = search.bits - by_permute;
    const __m256i one = _mm256_set1_epi32(1 << by_permute);
    for (__m256i& r : rank) r = _mm256_slli_epi32(_mm256_xor_si256(r, one), static_cast<int>(by_gather));
    for (unsigned more = (1u << by_gather) / 2; more != 0; more /= 2) {
      const __m256i up = _mm256_set1_epi32(static_cast<int>(more));
      for (unsigned v = 0; v < Vectors; ++v) {
        const __m256 at = gather_floats<4>(search.thresholds + more - 1, rank[v]);
        const __m256i right = _mm256_castps_si256(_mm256_cmp_ps(x[v], at, _CMP_GE_OQ));
        rank[v] = _mm256_add_epi32(rank[v], _mm256_and_si256(right, up));
        tie[v] = _mm256_or_ps(tie[v], _mm256_cmp_ps(x[v], at, _CMP_EQ_OQ));
      }
    }
    if constexpr (Source::kRounded)
      if (source.values != nullptr) settle(search, tie, first, source, rank);
    std::uint8_t* to = codes + std::size_t{search.first_column} * kCodeRows + first;
    for (const ColumnDesc& column : search.columns) {
      write(x, rank, column, to);
      to += kCodeRows;
    }
  }

  /// Settles the ranks of values that are equal to a threshold: see RoundedUp.
  template <unsigned Vectors>
  FVM_INLINE static void settle(const FeatureSearch& search, const __m256 (&tie)[Vectors], unsigned first,
                                const RoundedUp& source, __m256i (&rank)[Vectors]) {
    std::uint64_t ties = 0;
    for (unsigned v = 0; v < Vectors; ++v)
      ties |= std::uint64_t{static_cast<unsigned>(_mm256_movemask_ps(tie[v]))} << v * kLanes;
    if (__builtin_expect(ties == 0, 1)) return;
    alignas(32) std::uint32_t ranks[kLanes * Vectors];
    for (unsigned v = 0; v < Vectors; ++v)
      _mm256_store_si256(reinterpret_cast<__m256i*>(ranks + v * kLanes), rank[v]);
    for (; ties != 0; ties &= ties - 1) {
      const auto r = static_cast<unsigned>(_tzcnt_u64(ties));
      ranks[r] = source.rank(search.feature, first + r, search.thresholds[ranks[r] - 1], ranks[r]);
    }
    for (unsigned v = 0; v < Vectors; ++v)
      rank[v] = _mm256_load_si256(reinterpret_cast<const __m256i*>(ranks + v * kLanes));
  }

  /// Encodes values number `begin` to `end` - 1 one by one. They are `stride` apart.
  template <class Source>
  FVM_INLINE static void encode_each(const FeatureSearch& search, const float* values, std::size_t stride,
                                     unsigned begin, unsigned end, std::uint8_t* codes,
                                     const Source& source) {
    for (unsigned r = begin; r < end; ++r) encode_one(search, values[r * stride], r, source, codes);
  }

  template <unsigned Vectors>
  FVM_INLINE static void search_splitters(const FeatureSearch& search, const __m256 (&x)[Vectors],
                                          __m256i (&rank)[Vectors], __m256 (&tie)[Vectors]) {
    const float* const at = search.splitters;
    const __m256 s0 = _mm256_loadu_ps(at), top = _mm256_set1_ps(at[1]);
    for (unsigned v = 0; v < Vectors; ++v) {
      rank[v] = _mm256_set1_epi32(1);
      tie[v] = _mm256_setzero_ps();
      narrow(x[v], rank[v], tie[v], top);
    }
    if (search.bits == 1) return;
    for (unsigned v = 0; v < Vectors; ++v)
      narrow(x[v], rank[v], tie[v], _mm256_permutevar8x32_ps(s0, rank[v]));
    if (search.bits == 2) return;
    for (unsigned v = 0; v < Vectors; ++v)
      narrow(x[v], rank[v], tie[v], _mm256_permutevar8x32_ps(s0, rank[v]));
    if (search.bits == 3) return;
    for (unsigned v = 0; v < Vectors; ++v) narrow(x[v], rank[v], tie[v], pick<8>(at + 8, rank[v]));
    if (search.bits == 4) return;
    for (unsigned v = 0; v < Vectors; ++v) narrow(x[v], rank[v], tie[v], pick<16>(at + 16, rank[v]));
    if (search.bits == 5) return;
    for (unsigned v = 0; v < Vectors; ++v) narrow(x[v], rank[v], tie[v], pick<32>(at + 32, rank[v]));
    if (search.bits == 6) return;
    for (unsigned v = 0; v < Vectors; ++v) narrow(x[v], rank[v], tie[v], pick<64>(at + 64, rank[v]));
  }

  /// Returns splitter number rank % kSplitters for each lane. kSplitters is a power of two.
  template <unsigned kSplitters>
  FVM_INLINE static __m256 pick(const float* splitters, __m256i rank) {
    if constexpr (kSplitters == kLanes) {
      return _mm256_permutevar8x32_ps(_mm256_loadu_ps(splitters), rank);
    } else {
      constexpr unsigned kHalf = kSplitters / 2;
      constexpr int kToSign = 31 - __builtin_ctz(kHalf);  // moves the bit that tells the halves apart
      return _mm256_blendv_ps(pick<kHalf>(splitters, rank), pick<kHalf>(splitters + kHalf, rank),
                              _mm256_castsi256_ps(_mm256_slli_epi32(rank, kToSign)));
    }
  }

  /// Takes one more step of the search. Sets the lanes of `tie` whose value is equal to the splitter.
  FVM_INLINE static void narrow(__m256 x, __m256i& rank, __m256& tie, __m256 splitter) {
    const __m256i right = _mm256_castps_si256(_mm256_cmp_ps(x, splitter, _CMP_GE_OQ));
    tie = _mm256_or_ps(tie, _mm256_cmp_ps(x, splitter, _CMP_EQ_OQ));
    rank = _mm256_sub_epi32(_mm256_add_epi32(rank, rank), right);
  }

  /// Writes the codes of the rows of a few vectors in one column.
  template <unsigned Vectors>
  FVM_INLINE static void write(const __m256 (&x)[Vectors], const __m256i (&rank)[Vectors],
                               const ColumnDesc& column, std::uint8_t* to) {
    for (unsigned v = 0; v < Vectors; v += 4) {
      const __m256i codes = codes_of_four(&x[v], &rank[v], Vectors - v, column);
      if constexpr (Vectors >= 4)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + v * kLanes), codes);
      else
        _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(codes));
    }
  }

  /// Returns the codes in a column of the values `x` of four vectors, or of `count` vectors if they are fewer.
  FVM_INLINE static __m256i codes_of_four(const __m256* x, const __m256i* rank, unsigned count,
                                          const ColumnDesc& column) {
    __m256i above[4];
    const __m256i first = _mm256_set1_epi32(static_cast<int>(column.first));
    for (unsigned v = 0; v < 4; ++v) {
      above[v] = rank[v < count ? v : 0];
      if (column.first != 0) above[v] = _mm256_sub_epi32(_mm256_max_epu32(above[v], first), first);
    }
    const __m256i most = _mm256_set1_epi16(static_cast<short>(column.count));
    const __m256i low = _mm256_min_epu16(_mm256_packus_epi32(above[0], above[1]), most),
                  high = _mm256_min_epu16(_mm256_packus_epi32(above[2], above[3]), most);
    const __m256i codes = in_order(_mm256_packus_epi16(low, high));
    // No comparison with a missing value holds, so its rank is 0.
    if (column.missing_highest == 0) return codes;
    __m256i none[4];
    for (unsigned v = 0; v < 4; ++v) {
      const __m256 value = x[v < count ? v : 0];
      none[v] = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    }
    const __m256i missing = in_order(
        _mm256_packs_epi16(_mm256_packs_epi32(none[0], none[1]), _mm256_packs_epi32(none[2], none[3])));
    return _mm256_blendv_epi8(codes, _mm256_set1_epi8(static_cast<char>(column.count)), missing);
  }

  /// Puts the bytes of each of four vectors side by side. Packing leaves four bytes of each vector, then the next four
  /// of each.
  FVM_INLINE static __m256i in_order(__m256i packed) {
    return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
};

}  // namespace forestvm::host
