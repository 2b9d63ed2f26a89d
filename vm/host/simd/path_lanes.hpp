// Vectors of float32 or float64 numbers with a row in each lane, as wide as the target's registers, and masks that
// choose between them.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm::host {

/// Operations on vectors with a row in each lane. `Target` is a parameter so that the code of one target does not
/// share symbols with the code of another, which is compiled with other instructions.
template <class Target, class Number>
struct PathLanes {
  static constexpr bool kSingle = std::is_same_v<Number, float>;
  static constexpr unsigned kBytes = Target::Codes::kLanes;  ///< Bytes of a vector.
  static constexpr unsigned kLanes = kBytes / sizeof(Number);

  using Vector [[gnu::vector_size(kBytes)]] = Number;

  FVM_INLINE static Vector load(const Number* from) {
    Vector numbers;
    std::memcpy(&numbers, from, sizeof numbers);
    return numbers;
  }
  FVM_INLINE static void store(Number* to, Vector numbers) { std::memcpy(to, &numbers, sizeof numbers); }
  FVM_INLINE static Vector all(Number number) { return number - Vector{}; }

#if defined(__AVX512BW__)
  static constexpr bool kPermutes = true;  ///< Whether lanes can be permuted, compressed and expanded.
  using Mask = std::conditional_t<kSingle, __mmask16, __mmask8>;

  /// Returns the mask of the lowest kLanes bits.
  FVM_INLINE static Mask mask(std::uint64_t bits) { return static_cast<Mask>(bits); }
  /// Returns `yes` in the lanes of the mask, `no` in the others.
  FVM_INLINE static Vector select(Mask mask, Vector no, Vector yes) {
    if constexpr (kSingle)
      return _mm512_mask_blend_ps(mask, no, yes);
    else
      return _mm512_mask_blend_pd(mask, no, yes);
  }

  /// Up to four constants, of which each row takes one.
  using Table = Vector;
  /// Which constant each row takes: see set_choices.
  using Choice = __m512i;

  /// Returns the two, or kFour, constants that begin at `from`. Reads four, even if there are two.
  template <bool kFour>
  FVM_INLINE static Table table(const Number* from) {
    if constexpr (kSingle)
      return _mm512_broadcast_f32x4(_mm_loadu_ps(from));
    else
      return _mm512_broadcast_f64x4(_mm256_loadu_pd(from));
  }
  /// Writes which constant each row of a block takes: 0, the first, if its bit in `tested` is 1, otherwise 1; but 2 if
  /// its bit in `open` is 0.
  FVM_INLINE static void set_choices(std::uint64_t tested, std::uint64_t open, std::uint8_t* to) {
    const __m512i index = _mm512_maskz_set1_epi8(~tested, 1);
    _mm512_storeu_si512(to, _mm512_mask_set1_epi8(index, ~open, 2));
  }
  FVM_INLINE static Choice choice(const std::uint8_t* from) {
    if constexpr (kSingle)
      return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    else
      return _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  }
  /// Keeps a vector in a register: GCC would otherwise load it again for each use.
  FVM_INLINE static Vector held(Vector numbers) {
    asm("" : "+v"(numbers));
    return numbers;
  }
  template <bool kFour>
  FVM_INLINE static Vector chosen(Table table, Choice choice) {
    if constexpr (kSingle)
      return _mm512_permutevar_ps(table, choice);
    else
      return _mm512_permutexvar_pd(choice, table);
  }
#else
  static constexpr bool kPermutes = false;
  using Bits = std::conditional_t<kSingle, std::uint32_t, std::uint64_t>;
  using Mask [[gnu::vector_size(kBytes)]] = Bits;

  FVM_INLINE static Mask mask(std::uint64_t bits) {
    Mask lane, all;
    for (unsigned i = 0; i < kLanes; ++i) {
      lane[i] = Bits{1} << i;
      all[i] = static_cast<Bits>(bits);
    }
    return reinterpret_cast<Mask>((all & lane) == lane);
  }
  FVM_INLINE static Vector select(Mask mask, Vector no, Vector yes) {
    return reinterpret_cast<Vector>((reinterpret_cast<Mask>(yes) & mask) |
                                    (reinterpret_cast<Mask>(no) & ~mask));
  }

  struct Table {
    Vector left, right, away;
  };
  struct Choice {
    Mask tested, open;
  };

  FVM_INLINE static Vector held(Vector numbers) { return numbers; }

  template <bool kFour>
  FVM_INLINE static Table table(const Number* from) {
    return {all(from[0]), all(from[1]), all(kFour ? from[2] : 0)};
  }
  template <bool kFour>
  FVM_INLINE static Choice choice(std::uint64_t tested, std::uint64_t open) {
    return {mask(tested), mask(kFour ? open : 0)};
  }
  template <bool kFour>
  FVM_INLINE static Vector chosen(const Table& table, const Choice& choice) {
    const Vector number = select(choice.tested, table.right, table.left);
    return kFour ? select(choice.open, table.away, number) : number;
  }
#endif

  /// Returns a bit for each of the first `rows` codes: 1 if it is at most `code`. Higher bits are unspecified. Reads
  /// the codes of these rows only, because another thread may be writing the others.
  FVM_INLINE static std::uint64_t at_most(const std::uint8_t* codes, unsigned rows, std::uint8_t code) {
#if defined(__AVX512BW__)
    const __m512i all = _mm512_set1_epi8(static_cast<char>(code));
    return _mm512_cmple_epu8_mask(_mm512_maskz_loadu_epi8(_bzhi_u64(~std::uint64_t{0}, rows), codes), all);
#else
    if (rows == kCodeRows) return whole_at_most(codes, code);
    std::uint8_t copy[kCodeRows] = {};
    std::memcpy(copy, codes, rows);
    return whole_at_most(copy, code);
#endif
  }

 private:
#if !defined(__AVX512BW__)
  /// Returns a bit for each of a block's codes in a column: 1 if it is at most `code`.
  FVM_INLINE static std::uint64_t whole_at_most(const std::uint8_t* codes, std::uint8_t code) {
    std::uint64_t bits = 0;
#if defined(__AVX2__)
    const __m256i all = _mm256_set1_epi8(static_cast<char>(code));
    for (unsigned i = 0; i < kCodeRows; i += 32) {
      const __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i));
      const int found = _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(some, all), some));
      bits |= std::uint64_t{static_cast<std::uint32_t>(found)} << i;
    }
#elif defined(__SSE2__)
    const __m128i all = _mm_set1_epi8(static_cast<char>(code));
    for (unsigned i = 0; i < kCodeRows; i += 16) {
      const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i));
      const int found = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(some, all), some));
      bits |= std::uint64_t{static_cast<std::uint32_t>(found)} << i;
    }
#else
    for (unsigned i = 0; i < kCodeRows; ++i) bits |= std::uint64_t{codes[i] <= code} << i;
#endif
    return bits;
  }
#endif
};

}  // namespace forestvm::host
