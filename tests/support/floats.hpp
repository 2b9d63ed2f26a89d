// How far apart two floats are, for tests that hold results to bits or to units in the last place.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

namespace forestvm::support {

inline bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// Floats between a and b; 0 for two NaN, very many for one.
inline std::int64_t ulps(float a, float b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<std::int32_t>::max();
  const auto ordered = [](float x) -> std::int64_t {
    const auto bits = std::bit_cast<std::int32_t>(x);
    return bits >= 0 ? bits : -std::int64_t{bits & 0x7fffffff};
  };
  return std::abs(ordered(a) - ordered(b));
}

}  // namespace forestvm::support
