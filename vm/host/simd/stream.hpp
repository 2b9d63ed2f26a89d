// Copies numbers to memory past the caches, which they would fill before anybody reads them. Without SSE2 it is a copy.
// A thread calls finish_streams() before others may read what it has streamed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <forestvm/core/platform.hpp>

namespace forestvm::host {

inline constexpr std::size_t kStreamedBytes = 64;  ///< The bytes of a line, which is streamed as a whole.

/// The parts of a line in vectors of 16 bytes.
struct Stream16 {
  FVM_INLINE static void stream_line(void* to, const void* from) {
#if defined(__SSE2__)
#pragma GCC unroll 4
    for (unsigned i = 0; i < 4; ++i)
      _mm_stream_si128(static_cast<__m128i*>(to) + i, _mm_loadu_si128(static_cast<const __m128i*>(from) + i));
#else
    std::memcpy(to, from, kStreamedBytes);
#endif
  }
  FVM_INLINE static void finish_streams() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
  }
};

/// Returns how many numbers lie before the first that begins a line.
template <class Number>
FVM_INLINE std::size_t before_line(const Number* at) {
  return -(reinterpret_cast<std::uintptr_t>(at) / sizeof *at) % (kStreamedBytes / sizeof *at);
}

/// Copies numbers. Whole lines are streamed by Stream::stream_line.
template <class Stream, class Number>
FVM_INLINE void stream(Number* to, const Number* from, std::size_t count) {
  constexpr std::size_t kLine = kStreamedBytes / sizeof *to;
  const std::size_t first = std::min(count, before_line(to));
  std::memcpy(to, from, first * sizeof *to);
  std::size_t i = first;
  for (; count - i >= kLine; i += kLine) Stream::stream_line(to + i, from + i);
  std::memcpy(to + i, from + i, (count - i) * sizeof *to);
}

}  // namespace forestvm::host
