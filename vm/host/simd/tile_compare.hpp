// The tests of a tile's nodes, taken four at a time where there is SSE2.
#pragma once

#include <forestvm/core/layout/tile.hpp>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace forestvm::host {

struct TileCompare {
  /// Returns the tests' outcomes as bits: bit i is set if node i of the tile goes left.
  template <unsigned Width>
  FVM_INLINE static unsigned outcomes(const float* thresholds, const std::uint32_t* features,
                                      const float* row) {
#if defined(__SSE2__)
    unsigned bits = 0;
    for (unsigned i = 0; i < Width; i += 4) {
      const float* const x = row;
      const std::uint32_t* const f = features + i;
      const __m128 values = _mm_set_ps(x[f[3] & kFeatureMask], x[f[2] & kFeatureMask], x[f[1] & kFeatureMask],
                                       x[f[0] & kFeatureMask]);
      const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(f));
      // Moves the flag to the sign bit, which movemask reads.
      const __m128 missing_left = _mm_castsi128_ps(_mm_slli_epi32(words, 1));
      const __m128 left = _mm_or_ps(_mm_cmplt_ps(values, _mm_loadu_ps(thresholds + i)),
                                    _mm_and_ps(_mm_cmpunord_ps(values, values), missing_left));
      bits |= static_cast<unsigned>(_mm_movemask_ps(left)) << i;
    }
    return bits;
#else
    return ScalarCompare::outcomes<Width>(thresholds, features, row);
#endif
  }
};

static_assert(kMissingLeft << 1 == kLeaf, "shifted by one, the flag is the sign bit");

}  // namespace forestvm::host
