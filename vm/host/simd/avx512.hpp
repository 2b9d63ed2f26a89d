// Vectors of 64 bytes on AVX-512 with VBMI, for the walkers of rank codes. portable.hpp describes the operations that
// all such vectors have.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/platform.hpp>

#include "vm/host/simd/avx512_gathers.hpp"

namespace forestvm::host {

struct Avx512Bytes {
  static constexpr unsigned kLanes = 64;
  using Bytes = __m512i;
  using Mask = __mmask64;

  FVM_INLINE static Bytes load(const std::uint8_t* from) { return _mm512_loadu_si512(from); }
  FVM_INLINE static void store(std::uint8_t* to, Bytes bytes) { _mm512_storeu_si512(to, bytes); }
  FVM_INLINE static Bytes all(std::uint8_t value) { return _mm512_set1_epi8(static_cast<char>(value)); }
  FVM_INLINE static Bytes add(Bytes a, Bytes b) { return _mm512_add_epi8(a, b); }
  FVM_INLINE static Bytes subtract(Bytes a, Bytes b) { return _mm512_sub_epi8(a, b); }
  FVM_INLINE static Mask has_bit(Bytes a, std::uint8_t bit) { return _mm512_test_epi8_mask(a, all(bit)); }
  FVM_INLINE static Mask in_eight(Bytes a, std::uint8_t first) {
    return _mm512_cmpeq_epi8_mask(_mm512_and_si512(a, all(0xf8)), all(first));
  }
  FVM_INLINE static Bytes select(Mask mask, Bytes no, Bytes yes) {
    return _mm512_mask_blend_epi8(mask, no, yes);
  }
  FVM_INLINE static Bytes majority(Bytes a, Bytes b, Bytes c) {
    return _mm512_ternarylogic_epi64(a, b, c, 0xe8);
  }
  FVM_INLINE static Bytes add_where(const std::uint8_t* bits, Bytes sums, std::uint8_t value) {
    Mask mask = 0;
    std::memcpy(&mask, bits, sizeof mask);
    return _mm512_mask_add_epi8(sums, mask, sums, all(value));
  }
  FVM_INLINE static void stream_line(void* to, const void* from) {
    _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
  FVM_INLINE static void finish_streams() { _mm_sfence(); }
  /// Returns `into`, in the lanes of the mask the bytes of `from` at their indices.
  FVM_INLINE static Bytes permute_where(Mask mask, Bytes into, Bytes index, Bytes from) {
    return _mm512_mask_permutexvar_epi8(into, mask, index, from);
  }
  FVM_INLINE static Mask at_least(Bytes a, Bytes b) { return _mm512_cmpge_epu8_mask(a, b); }
  FVM_INLINE static Bytes step(Bytes from, Bytes x, Bytes code) {
    return _mm512_mask_sub_epi8(from, _mm512_cmpgt_epu8_mask(x, code), from, all(0xff));
  }
  FVM_INLINE static Bytes step(Bytes from, Bytes x, Bytes code, Bytes by) {
    return _mm512_mask_add_epi8(from, _mm512_cmpgt_epu8_mask(x, code), from, by);
  }

  /// Loads the lower half of the lanes from one address, the upper half from another.
  FVM_INLINE static Bytes load_halves(const std::uint8_t* low, const std::uint8_t* high) {
    return _mm512_inserti64x4(
        _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(low))),
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high)), 1);
  }

  /// Returns one value in the lower half of the lanes, another in the upper half.
  FVM_INLINE static Bytes halves(std::uint8_t low, std::uint8_t high) {
    return select(0xffffffff00000000, all(low), all(high));
  }

  /// Returns the value in the upper half of the lanes, 0 in the lower half.
  FVM_INLINE static Bytes upper(std::uint8_t value) {
    return _mm512_maskz_mov_epi8(0xffffffff00000000, all(value));
  }

  template <unsigned Size>
  struct Table;
  /// Two tables, one for each half of the lanes.
  template <unsigned Size>
  struct TwoTables;

  /// The codes of half as many rows as there are lanes, stored row by row: Columns bytes for each row.
  template <unsigned Columns>
  class CodesByRow {
    static constexpr unsigned kRows = kLanes / 2;

   public:
    static constexpr unsigned kBytes = kRows * Columns;

    /// Writes codes to `to` row by row. In `codes` they are stored column by column, kCodeRows bytes from one
    /// column to the next.
    FVM_INLINE static void transpose(const std::uint8_t* codes, std::size_t columns, std::uint8_t* to) {
      for (unsigned panel = 0; panel < Columns; panel += 16)
        for (unsigned r = 0; r < kRows; r += 16) {
          __m128i x[16], y[16];
          for (unsigned c = 0; c < 16; ++c)
            x[c] =
                panel + c < columns
                    ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + (panel + c) * kCodeRows + r))
                    : _mm_setzero_si128();
          for (unsigned stage = 0; stage < 4; ++stage) {
            for (unsigned i = 0; i < 8; ++i) {
              y[2 * i] = _mm_unpacklo_epi8(x[i], x[i + 8]);
              y[2 * i + 1] = _mm_unpackhi_epi8(x[i], x[i + 8]);
            }
            for (unsigned i = 0; i < 16; ++i) x[i] = y[i];
          }
          for (unsigned i = 0; i < 16; ++i)
            if constexpr (Columns == 8)
              _mm_storel_epi64(reinterpret_cast<__m128i*>(to + (r + i) * Columns), x[i]);
            else
              _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (r + i) * Columns + panel), x[i]);
        }
    }

    /// Returns in lane i the code of row i % kRows in that lane's column.
    FVM_INLINE static Bytes pick(const std::uint8_t* rows, Bytes column) {
      return any_of<0, kBytes / kLanes>(rows, _mm512_or_si512(column, load(kBase.bytes)));
    }

   private:
    struct Base {
      alignas(64) std::uint8_t bytes[kLanes];
      static constexpr Base make() {
        Base base{};
        for (unsigned i = 0; i < kLanes; ++i) base.bytes[i] = static_cast<std::uint8_t>(i * Columns % kLanes);
        return base;
      }
    };
    static constexpr Base kBase = Base::make();

    /// Returns the lanes whose row lies in a run of odd number, where a run is `registers` registers of rows.
    static constexpr Mask odd(unsigned registers) {
      Mask mask = 0;
      for (unsigned i = 0; i < kLanes; ++i)
        if (i % kRows * Columns / kLanes / registers % 2 != 0) mask |= Mask{1} << i;
      return mask;
    }

    template <unsigned First, unsigned Count>
    FVM_INLINE static Bytes any_of(const std::uint8_t* rows, Bytes index) {
      if constexpr (Count == 1) {
        return _mm512_permutexvar_epi8(index, load(rows + First * kLanes));
      } else {
        const Bytes low = any_of<First, Count / 2>(rows, index);
        if constexpr (Count == 2)
          return _mm512_mask_permutexvar_epi8(low, odd(1), index, load(rows + (First + 1) * kLanes));
        else
          return select(odd(Count / 2), low, any_of<First + Count / 2, Count / 2>(rows, index));
      }
    }
  };

  /// Looks up columns by their indices in two lists, one for each half of the lanes. A list's entries are the columns'
  /// offsets in bytes in a block of codes. Columns and indices must be below 32. The constructor reads 16 entries of
  /// each list, or 32 if `Longest` exceeds 16, whatever lies after the list's end.
  template <unsigned Longest>
  class TwoLists {
    static_assert(Longest <= 32);

   public:
    FVM_INLINE TwoLists(const std::uint32_t* low, const std::uint32_t* high)
        : bytes_(_mm512_inserti64x4(_mm512_castsi256_si512(columns(low)), columns(high), 1)) {}
    FVM_INLINE Bytes operator[](Bytes number) const {
      return _mm512_permutexvar_epi8(_mm512_or_si512(number, upper(32)), bytes_);
    }

   private:
    FVM_INLINE static __m256i columns(const std::uint32_t* list) {
      const __m256i first = _mm256_castsi128_si256(sixteen(list));
      return Longest <= 16 ? first : _mm256_inserti128_si256(first, sixteen(list + 16), 1);
    }
    FVM_INLINE static __m128i sixteen(const std::uint32_t* list) {
      return _mm512_cvtepi32_epi8(_mm512_srli_epi32(_mm512_loadu_si512(list), std::bit_width(kCodeRows) - 1));
    }

    __m512i bytes_;
  };

  /// Adds leaves[at[i]], which is one of `count` leaves, to sums[i] for each of `rows` rows, a multiple of
  /// half a vector's lanes, or stores it there if kAdds is false.
  template <bool kAdds>
  FVM_INLINE static void put_leaves(float* sums, const float* leaves, std::uint32_t count,
                                    const std::uint8_t* at, std::size_t rows) {
    if (count <= 16)
      put_by<kAdds>(sums, at, rows, FewLeaves<1>(leaves, count));
    else if (count <= 32)
      put_by<kAdds>(sums, at, rows, FewLeaves<2>(leaves, count));
    else if (count <= 64)
      put_by<kAdds>(sums, at, rows, FewLeaves<4>(leaves, count));
    else if (count <= 128)
      put_by<kAdds>(sums, at, rows, FewLeaves<8>(leaves, count));
    else if (rows >= kLanes)
      LeafPlanes<float, 4>(leaves, count).template put<kAdds>(sums, at, rows);
    else
      put_by<kAdds>(sums, at, rows, ManyLeaves{leaves});
  }

  template <bool kAdds>
  FVM_INLINE static void put_leaves(double* sums, const double* leaves, std::uint32_t count,
                                    const std::uint8_t* at, std::size_t rows) {
    if (count <= 16)
      put_by<kAdds>(sums, at, rows, FewWideLeaves<2>(leaves, count));
    else if (count <= 32)
      put_by<kAdds>(sums, at, rows, FewWideLeaves<4>(leaves, count));
    else if (count <= 64)
      LeafPlanes<double, 1>(leaves, count).template put<kAdds>(sums, at, rows);
    else if (count <= 128)
      LeafPlanes<double, 2>(leaves, count).template put<kAdds>(sums, at, rows);
    else if (rows > kLanes)
      LeafPlanes<double, 4>(leaves, count).template put<kAdds>(sums, at, rows);
    else
      put_by<kAdds>(sums, at, rows, ManyWideLeaves{leaves});
  }

 private:
  /// Leaves in registers, up to 16 in each.
  template <unsigned Registers>
  struct FewLeaves {
    __m512 parts[Registers];

    FVM_INLINE FewLeaves(const float* leaves, std::uint32_t count) {
      for (unsigned i = 0; i < Registers; ++i) {
        const unsigned have = count > 16 * i ? count - 16 * i : 0;
        parts[i] = _mm512_maskz_loadu_ps(static_cast<__mmask16>(_bzhi_u32(0xffff, have)), leaves + 16 * i);
      }
    }
    FVM_INLINE __m512 operator[](__m512i at) const {
      if constexpr (Registers == 1)
        return _mm512_permutexvar_ps(at, parts[0]);
      else
        return of<0, Registers>(at);
    }

   private:
    template <unsigned First, unsigned Count>
    FVM_INLINE __m512 of(__m512i at) const {
      if constexpr (Count == 2)
        return _mm512_permutex2var_ps(parts[First], at, parts[First + 1]);
      else
        return _mm512_mask_blend_ps(_mm512_test_epi32_mask(at, _mm512_set1_epi32(8 * Count)),
                                    of<First, Count / 2>(at), of<First + Count / 2, Count / 2>(at));
    }
  };

  struct ManyLeaves {
    const float* leaves;
    FVM_INLINE __m512 operator[](__m512i at) const { return gather_floats<4>(leaves, at); }
  };

  /// Float64 leaves in registers, up to 8 in each.
  template <unsigned Registers>
  struct FewWideLeaves {
    __m512d parts[Registers];

    FVM_INLINE FewWideLeaves(const double* leaves, std::uint32_t count) {
      for (unsigned i = 0; i < Registers; ++i) {
        const unsigned have = count > 8 * i ? count - 8 * i : 0;
        parts[i] = _mm512_maskz_loadu_pd(static_cast<__mmask8>(_bzhi_u32(0xff, have)), leaves + 8 * i);
      }
    }
    FVM_INLINE __m512d operator[](__m128i at) const {
      const __m512i index = _mm512_cvtepu8_epi64(at);
      const __m512d low = _mm512_permutex2var_pd(parts[0], index, parts[1]);
      if constexpr (Registers == 2) return low;
      if constexpr (Registers == 4)
        return _mm512_mask_blend_pd(_mm512_test_epi64_mask(index, _mm512_set1_epi64(16)), low,
                                    _mm512_permutex2var_pd(parts[2], index, parts[3]));
    }
  };

  struct ManyWideLeaves {
    const double* leaves;
    FVM_INLINE __m512d operator[](__m128i at) const {
      return gather_doubles<8>(leaves, _mm256_cvtepu8_epi32(at));
    }
  };

  /// Leaves as planes of bytes: plane p has byte p of each of 64 leaves, so that one permute looks 64 rows up in it.
  /// Where gathers are slow, as on AMD, this takes a fifth of their time. turn() changes leaves from their order in
  /// memory to planes, and results from planes to the order of rows. It moves byte b of each 16-byte part of vector v
  /// to byte b' of the same part of vector v', where the bits of v' and b', side by side, are those of v and b rotated
  /// left by one.
  template <class Score, unsigned Tables>
  class LeafPlanes {
   public:
    FVM_INLINE LeafPlanes(const Score* leaves, std::uint32_t count) {
      for (unsigned i = 0; i < Tables * kPlanes; ++i) {
        const unsigned first = i * kInVector, have = count > first ? count - first : 0;
        const auto bytes = _bzhi_u64(~std::uint64_t{0}, std::min(have, kInVector) * kPlanes);
        planes_[i / kPlanes][i % kPlanes] = _mm512_maskz_loadu_epi8(bytes, leaves + first);
      }
      for (unsigned t = 0; t < Tables; ++t) turn<4>(planes_[t]);
    }

    /// Does put_leaves() for `rows` rows, a multiple of half a vector's lanes.
    template <bool kAdds>
    FVM_INLINE void put(Score* sums, const std::uint8_t* at, std::size_t rows) const {
      const __m512i rows_in_planes = load(kOrders.numbers), indices = load(kOrders.indices);
      for (std::size_t row = 0; row < rows; row += kLanes) {
        const auto have = static_cast<unsigned>(std::min<std::size_t>(rows - row, kLanes));
        const __m512i mine = _mm512_maskz_loadu_epi8(_bzhi_u64(~std::uint64_t{0}, have), at + row);
        const __m512i wanted = _mm512_permutexvar_epi8(rows_in_planes, mine);
        // A leaf's index in a plane. The two highest bits of its number stay, and choose among tables.
        const __m512i index =
            _mm512_ternarylogic_epi64(all(0x3f), _mm512_permutexvar_epi8(wanted, indices), wanted, 0xca);
        __m512i found[kPlanes];
        for (unsigned p = 0; p < kPlanes; ++p) found[p] = look_up(p, index);
        turn<std::bit_width(kPlanes) - 1>(found);
        for (unsigned i = 0; i * kInVector < have; ++i)
          put_vector<kAdds>(sums + row + i * kInVector, found[i]);
      }
    }

   private:
    static constexpr unsigned kPlanes = sizeof(Score), kInVector = kLanes / kPlanes;

    /// The indices in a plane of leaves or rows by their numbers, and the numbers by the indices.
    struct Orders {
      alignas(64) std::uint8_t indices[kLanes], numbers[kLanes];
      static constexpr Orders make() {
        constexpr unsigned kInPart = kInVector / 4;
        Orders orders{};
        for (unsigned number = 0; number < kLanes; ++number) {
          const unsigned vector = number / kInVector, part = number / kInPart % 4;
          const unsigned index = part * 16 + vector * kInPart + number % kInPart;
          orders.indices[number] = static_cast<std::uint8_t>(index);
          orders.numbers[index] = static_cast<std::uint8_t>(number);
        }
        return orders;
      }
    };
    static constexpr Orders kOrders = Orders::make();

    template <unsigned Turns>
    FVM_INLINE static void turn(__m512i (&x)[kPlanes]) {
      for (unsigned turn = 0; turn < Turns; ++turn) {
        __m512i y[kPlanes];
        for (unsigned i = 0; i < kPlanes / 2; ++i) {
          y[2 * i] = _mm512_unpacklo_epi8(x[i], x[i + kPlanes / 2]);
          y[2 * i + 1] = _mm512_unpackhi_epi8(x[i], x[i + kPlanes / 2]);
        }
        for (unsigned i = 0; i < kPlanes; ++i) x[i] = y[i];
      }
    }

    FVM_INLINE __m512i look_up(unsigned p, __m512i index) const {
      if constexpr (Tables == 1) return _mm512_permutexvar_epi8(index, planes_[0][p]);
      const __m512i low = _mm512_permutex2var_epi8(planes_[0][p], index, planes_[Tables > 1][p]);
      if constexpr (Tables == 4)
        return select(_mm512_movepi8_mask(index), low,
                      _mm512_permutex2var_epi8(planes_[2][p], index, planes_[3][p]));
      return low;
    }

    template <bool kAdds>
    FVM_INLINE static void put_vector(float* sums, __m512i leaves) {
      put_numbers<kAdds>(sums, _mm512_castsi512_ps(leaves));
    }
    template <bool kAdds>
    FVM_INLINE static void put_vector(double* sums, __m512i leaves) {
      put_numbers<kAdds>(sums, _mm512_castsi512_pd(leaves));
    }

    __m512i planes_[Tables][kPlanes];
  };

  template <bool kAdds>
  FVM_INLINE static void put_numbers(float* sums, __m512 leaves) {
    _mm512_storeu_ps(sums, kAdds ? _mm512_add_ps(_mm512_loadu_ps(sums), leaves) : leaves);
  }
  template <bool kAdds>
  FVM_INLINE static void put_numbers(double* sums, __m512d leaves) {
    _mm512_storeu_pd(sums, kAdds ? _mm512_add_pd(_mm512_loadu_pd(sums), leaves) : leaves);
  }

  template <bool kAdds, class Leaves>
  FVM_INLINE static void put_by(double* sums, const std::uint8_t* at, std::size_t rows,
                                const Leaves& leaves) {
    for (std::size_t i = 0; i < rows; i += 8) {
      const __m128i index = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at + i));
      put_numbers<kAdds>(sums + i, leaves[index]);
    }
  }

  template <bool kAdds, class Leaves>
  FVM_INLINE static void put_by(float* sums, const std::uint8_t* at, std::size_t rows, const Leaves& leaves) {
    for (std::size_t i = 0; i < rows; i += 16) {
      const __m512i index = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i)));
      put_numbers<kAdds>(sums + i, leaves[index]);
    }
  }
};

template <>
struct Avx512Bytes::Table<16> {
  __m512i row;
  FVM_INLINE explicit Table(const std::uint8_t* from)
      : row(_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))) {}
  FVM_INLINE Bytes operator[](Bytes index) const { return _mm512_shuffle_epi8(row, index); }
};

template <>
struct Avx512Bytes::Table<64> {
  __m512i row;
  FVM_INLINE explicit Table(const std::uint8_t* from) : row(load(from)) {}
  FVM_INLINE Bytes operator[](Bytes index) const { return _mm512_permutexvar_epi8(index, row); }
};

template <>
struct Avx512Bytes::Table<32> : Table<64> {
  using Table<64>::Table;
};

template <>
struct Avx512Bytes::Table<128> {
  __m512i low, high;
  FVM_INLINE explicit Table(const std::uint8_t* from) : low(load(from)), high(load(from + 64)) {}
  FVM_INLINE Bytes operator[](Bytes index) const { return _mm512_permutex2var_epi8(low, index, high); }
};

template <>
struct Avx512Bytes::TwoTables<16> {
  __m512i row;
  FVM_INLINE TwoTables(const std::uint8_t* low, const std::uint8_t* high)
      : row(_mm512_mask_broadcast_i32x4(Table<16>(low).row, 0xff00,
                                        _mm_loadu_si128(reinterpret_cast<const __m128i*>(high)))) {}
  FVM_INLINE Bytes operator[](Bytes index) const { return _mm512_shuffle_epi8(row, index); }
};

template <>
struct Avx512Bytes::TwoTables<32> {
  __m512i row;
  FVM_INLINE TwoTables(const std::uint8_t* low, const std::uint8_t* high) : row(load_halves(low, high)) {}
  FVM_INLINE Bytes operator[](Bytes index) const {
    return _mm512_permutexvar_epi8(_mm512_or_si512(index, upper(32)), row);
  }
};

template <>
struct Avx512Bytes::TwoTables<64> {
  __m512i low, high;
  FVM_INLINE TwoTables(const std::uint8_t* of_low, const std::uint8_t* of_high)
      : low(load(of_low)), high(load(of_high)) {}
  FVM_INLINE Bytes operator[](Bytes index) const {
    return _mm512_permutex2var_epi8(low, _mm512_or_si512(index, upper(64)), high);
  }
};

/// Two tables that do not fit the registers that one permute takes: each is looked up on its own.
template <unsigned Size>
struct Avx512Bytes::TwoTables {
  Table<Size> low, high;
  FVM_INLINE TwoTables(const std::uint8_t* of_low, const std::uint8_t* of_high)
      : low(of_low), high(of_high) {}
  FVM_INLINE Bytes operator[](Bytes index) const {
    return select(0xffffffff00000000, low[index], high[index]);
  }
};

}  // namespace forestvm::host
