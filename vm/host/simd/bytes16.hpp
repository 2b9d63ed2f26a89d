// Vectors of 16 bytes, with the byte shuffles of SSSE3 or NEON, or a loop where there are neither.
#pragma once

#include <cstdint>

#if defined(__SSSE3__)
#include <tmmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include <forestvm/core/platform.hpp>

#include "vm/host/simd/portable.hpp"
#include "vm/host/simd/stream.hpp"

namespace forestvm::host {

struct Shuffle16 : Stream16 {
  static constexpr unsigned kLanes = 16;
  using Bytes = std::uint8_t __attribute__((vector_size(16)));

  FVM_INLINE static Bytes row(const std::uint8_t* from) {
    Bytes bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    return bytes;
  }
  FVM_INLINE static Bytes shuffle(Bytes table, Bytes index) {
#if defined(__SSSE3__)
    return reinterpret_cast<Bytes>(
        _mm_shuffle_epi8(reinterpret_cast<__m128i>(table), reinterpret_cast<__m128i>(index)));
#elif defined(__ARM_NEON)
    return reinterpret_cast<Bytes>(
        vqtbl1q_u8(reinterpret_cast<uint8x16_t>(table), reinterpret_cast<uint8x16_t>(index)));
#else
    Bytes found;
    for (unsigned i = 0; i < kLanes; ++i) found[i] = table[index[i]];
    return found;
#endif
  }
  FVM_INLINE static Bytes select(Bytes mask, Bytes no, Bytes yes) { return (yes & mask) | (no & ~mask); }
};

using Bytes16 = PortableBytes<Shuffle16>;

}  // namespace forestvm::host
