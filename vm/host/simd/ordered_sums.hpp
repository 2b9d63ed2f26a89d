// Sums whose additions have a fixed order, for the lanes of all vector targets of x86-64.
#pragma once

#include <immintrin.h>

#include <forestvm/core/platform.hpp>

namespace forestvm::host {

struct OrderedSums {
  /// Returns `sum` with each value added in turn. Without intrinsics the compiler would load whole vectors and take
  /// them apart.
  FVM_INLINE static float add_in_order(float sum, const float* values, unsigned count) {
    __m128 in_order = _mm_set_ss(sum);
    for (unsigned i = 0; i < count; ++i) in_order = _mm_add_ss(in_order, _mm_load_ss(values + i));
    return _mm_cvtss_f32(in_order);
  }
};

}  // namespace forestvm::host
