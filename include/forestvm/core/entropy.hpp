// The entropy of probabilities, which has the same bits on every device.
#pragma once

#include <limits>

#include <forestvm/core/platform.hpp>
#include <forestvm/core/transform.hpp>

namespace forestvm {

/// Returns log(x) for a finite x > 0, within 1 ulp of the correctly rounded result, the same bits on every device.
FVM_HOST_DEVICE inline double log_f64(double x) {
  const bool normal = x >= std::numeric_limits<double>::min();
  return normal ? scaled_log(x, 0, 0) : scaled_log(x * 0x1p54, 0, -54);
}

/// Returns what an outcome of this probability adds to the entropy of all outcomes.
FVM_HOST_DEVICE inline double entropy_term(double chance) {
  return chance > 0 ? -chance * log_f64(chance) : 0;
}

}  // namespace forestvm
