// Float64 values of rows, in a model that compares in float64. Walks compare float32, so a value x becomes the
// float32 that goes the same way in each of the model's comparisons `x >= bound`, where the bound is a float64
// number and walks compare with the least float32 that is not below it. That is x rounded down to float32, or
// up if x has reached a bound that lies between its two float32 neighbours.
#pragma once

#include <bit>
#include <cstdint>

#include <forestvm/core/platform.hpp>

namespace forestvm {

/// A feature that has a rule of its own for values. Other features only round values down.
struct WideFeature {
  std::uint32_t feature;
  std::uint32_t first_bound;  ///< Index of its first bound in the wide_bounds section.
  std::uint32_t bound_count;  ///< Number of its bounds, which ascend strictly.
  /// 1: a value is replaced by the number of bounds at or below it, because some bounds have no float32 number
  /// between them. 0: each bound lies between two float32 numbers of its own.
  std::uint8_t ranked;
  std::uint8_t categories;   ///< Which numbers are categories: a WideCategories of core/category_rules.hpp.
  std::uint8_t reserved[2];  ///< Zero.

  bool operator==(const WideFeature&) const = default;
};
static_assert(sizeof(WideFeature) == 16);

/// More bounds of a ranked feature than this are refused: float32 holds their numbers exactly.
inline constexpr std::uint32_t kMaxRankedBounds = std::uint32_t{1} << 24;

/// The float32 neighbours of a number; both are the number if it is a float32.
struct Neighbours {
  float down, up;
};

/// Returns the neighbours of a number that is not NaN. -0 and 0 count as neighbours of the numbers beside them.
inline Neighbours neighbours(double x) {
  const auto nearest = static_cast<float>(x);
  const auto wide = static_cast<double>(nearest);
  if (wide == x) return {nearest, nearest};
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  // Bits of negative numbers ascend as the numbers descend.
  const std::uint32_t step = bits >> 31 != 0 ? UINT32_MAX : 1;
  if (wide > x) return {std::bit_cast<float>(bits - step), nearest};
  return {nearest, std::bit_cast<float>(bits + step)};
}

}  // namespace forestvm
