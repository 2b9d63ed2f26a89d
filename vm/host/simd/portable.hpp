// Vectors of bytes for the walkers of rank codes, in the compiler's own vector types: what SSE, AVX2 and NEON
// have in common. Shuffle has the operations that compilers have no notation for, and the width of the
// vectors.
#pragma once

#include <cstdint>
#include <cstring>

#include <forestvm/core/platform.hpp>

namespace forestvm::host {

/// Shuffle has: unsigned kLanes; Bytes, a vector of kLanes uint8; Bytes row(const uint8_t*): 16 bytes in each
/// 16-byte part; Bytes shuffle(Bytes table, Bytes index): in each 16-byte part, the table's byte at the low
/// four bits of the index, whose highest bit is clear; Bytes select(Bytes mask, Bytes no, Bytes yes), each
/// byte of the mask 0 or 255.
template <class Shuffle>
struct PortableBytes {
  static constexpr unsigned kLanes = Shuffle::kLanes;
  using Bytes = typename Shuffle::Bytes;
  using Mask = Bytes;  ///< 255 in the bytes that are true.

  FVM_INLINE static Bytes load(const std::uint8_t* from) {
    Bytes bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    return bytes;
  }
  FVM_INLINE static void store(std::uint8_t* to, Bytes bytes) { std::memcpy(to, &bytes, sizeof bytes); }
  FVM_INLINE static Bytes all(std::uint8_t value) { return value - Bytes{}; }
  FVM_INLINE static Bytes add(Bytes a, Bytes b) { return a + b; }
  FVM_INLINE static Bytes subtract(Bytes a, Bytes b) { return a - b; }
  FVM_INLINE static Mask has_bit(Bytes a, std::uint8_t bit) {
    return reinterpret_cast<Mask>((a & all(bit)) == all(bit));
  }
  FVM_INLINE static Mask in_eight(Bytes a, std::uint8_t first) {
    return reinterpret_cast<Mask>((a & all(0xf8)) == all(first));
  }
  FVM_INLINE static Bytes select(Mask mask, Bytes no, Bytes yes) { return Shuffle::select(mask, no, yes); }
  /// Returns the bits that at least two of the vectors have.
  FVM_INLINE static Bytes majority(Bytes a, Bytes b, Bytes c) { return (a & b) | (c & (a ^ b)); }
  /// Returns `sums`, and `value` more in the lanes whose bits are set. Lane i has bit i % 8 of byte i / 8.
  FVM_INLINE static Bytes add_where(const std::uint8_t* bits, Bytes sums, std::uint8_t value) {
    typedef std::uint32_t Words __attribute__((vector_size(kLanes)));
    std::uint32_t word = 0;
    std::memcpy(&word, bits, kLanes / 8);
    const Bytes spread = Shuffle::shuffle(reinterpret_cast<Bytes>(Words{} + word), load(kSpread.byte_of));
    const Bytes bit = load(kSpread.bit_of);
    return sums + (reinterpret_cast<Bytes>((spread & bit) == bit) & all(value));
  }
  /// Stores 64 bytes to an aligned address, past the caches where the CPU can.
  FVM_INLINE static void stream_line(void* to, const void* from) { Shuffle::stream_line(to, from); }
  /// Orders these stores before later ones.
  FVM_INLINE static void finish_streams() { Shuffle::finish_streams(); }
  FVM_INLINE static Mask at_least(Bytes a, Bytes b) { return reinterpret_cast<Mask>(a >= b); }
  /// Returns `from`, and one more where x is above `code`.
  FVM_INLINE static Bytes step(Bytes from, Bytes x, Bytes code) {
    return from - reinterpret_cast<Bytes>(x > code);
  }
  /// Returns `from`, and `by` more where x is above `code`. It compares by "at most", which SSE and AVX2
  /// have; negating the result would take another instruction.
  FVM_INLINE static Bytes step(Bytes from, Bytes x, Bytes code, Bytes by) {
    return from + by - (reinterpret_cast<Bytes>(x <= code) & by);
  }

  /// A table of Size bytes: 16, 32, 64 or 128.
  template <unsigned Size>
  struct Table {
    Bytes rows[Size / 16];

    FVM_INLINE explicit Table(const std::uint8_t* from) {
      for (unsigned i = 0; i < Size / 16; ++i) rows[i] = Shuffle::row(from + std::size_t{i} * 16);
    }
    FVM_INLINE Bytes operator[](Bytes index) const {
      const Bytes low = index & all(0x0f);
      Bytes found[Size / 16];
      for (unsigned i = 0; i < Size / 16; ++i) found[i] = Shuffle::shuffle(rows[i], low);
      unsigned bit = 16;
      for (unsigned left = Size / 16; left > 1; left /= 2, bit *= 2) {
        const Mask upper = has_bit(index, static_cast<std::uint8_t>(bit));
        for (unsigned i = 0; i < left / 2; ++i) found[i] = select(upper, found[2 * i], found[2 * i + 1]);
      }
      return found[0];
    }
  };

  /// Adds leaves[at[i]] to sums[i] for each of `rows` rows, a multiple of kLanes, or stores it there if kAdds is false.
  template <bool kAdds, class Score>
  FVM_INLINE static void put_leaves(Score* sums, const Score* leaves, std::uint32_t, const std::uint8_t* at,
                                    std::size_t rows) {
    for (std::size_t i = 0; i < rows; ++i) sums[i] = kAdds ? sums[i] + leaves[at[i]] : leaves[at[i]];
  }

 private:
  /// For each lane, the byte in which its bit lies, and this bit.
  struct Spread {
    alignas(kLanes) std::uint8_t byte_of[kLanes], bit_of[kLanes];
    static constexpr Spread make() {
      Spread spread{};
      for (unsigned i = 0; i < kLanes; ++i) {
        spread.byte_of[i] = static_cast<std::uint8_t>(i / 8);
        spread.bit_of[i] = static_cast<std::uint8_t>(1U << i % 8);
      }
      return spread;
    }
  };
  static constexpr Spread kSpread = Spread::make();
};

}  // namespace forestvm::host
