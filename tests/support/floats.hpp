// Distances between floats, for tests that compare bits or units in the last place.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>

namespace forestvm::support {

template <class Float>
using BitsOf = std::conditional_t<sizeof(Float) == 4, std::int32_t, std::int64_t>;

template <class Float>
bool same_bits(Float a, Float b) {
  return std::bit_cast<BitsOf<Float>>(a) == std::bit_cast<BitsOf<Float>>(b);
}

/// Returns the number of steps between neighbouring floats (or doubles) from a to b: 0 for two NaN, a very
/// large number for one NaN or for opposite ends of the doubles.
template <class Float>
std::int64_t ulps(Float a, Float b) {
  using Bits = BitsOf<Float>;
  constexpr Bits most = std::numeric_limits<Bits>::max();
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : most;
  const auto ordered = [](Float x) -> std::int64_t {
    const auto bits = std::bit_cast<Bits>(x);
    return bits >= 0 ? bits : -std::int64_t{bits & most};
  };
  std::int64_t apart = 0;
  return __builtin_sub_overflow(ordered(a), ordered(b), &apart) ? most : std::abs(apart);
}

}  // namespace forestvm::support
