// Arithmetic that has the same bits on every device.
#pragma once

#include <bit>
#include <cstdint>

#include <forestvm/core/platform.hpp>

namespace forestvm {

/// Returns 2 to the power of an exponent from -1022 to 1023, the exponents of float64's normal numbers.
FVM_HOST_DEVICE constexpr double power_of_two(std::int32_t exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

}  // namespace forestvm
