// Rounds many float64 values down to float32 at once: see core/wide_values.hpp. Each CPU target compiles it.
#pragma once

#include <bit>
#include <cstdint>

#include <forestvm/core/platform.hpp>

namespace forestvm {

/// The most values that a RoundFunction takes.
inline constexpr std::uint32_t kRoundedAtOnce = 64;

/// Up to kRoundedAtOnce float64 values: of one feature after the other, or all of one.
struct RoundTask {
  const double* values;
  std::uint32_t count;
  std::uint32_t feature;        ///< Feature of the first value.
  std::uint32_t feature_step;   ///< 1: each value is of the next feature; 0: all are of the same one.
  const std::uint32_t* filter;  ///< A bit for each hash of a bound.
  std::uint32_t filter_mask;    ///< Number of bits less one.
  float* out;                   ///< Receives the values, rounded down.
};

/// Returns a bit for each value: 1 if a bound of its feature may lie below it, between its neighbours, so that it may
/// have to be rounded up.
using RoundFunction = std::uint64_t (*)(const RoundTask& task);
static_assert(kRoundedAtOnce <= 64);

/// Returns a hash of the bounds of a feature that lie just below `up`.
FVM_INLINE std::uint32_t hash_of_bound(std::uint32_t feature, std::uint32_t up_bits) {
  // Multiplies and shifts as MurmurHash3 ends: the bits of thresholds differ in few places.
  std::uint32_t h = up_bits * 0x9e3779b1u ^ feature * 0x85ebca6bu;
  h ^= h >> 15;
  h *= 0x2c1b3c6du;
  return h ^ h >> 13;
}

/// A RoundFunction without branches, which compilers turn into vector code. Tag keeps code that is compiled for
/// different CPUs apart.
template <class Tag>
std::uint64_t round_down(const RoundTask& task) {
  // Copies and an array of its own, because compilers must see that no store changes what is read.
  const double* const values = task.values;
  const std::uint32_t* const filter = task.filter;
  const std::uint32_t count = task.count, mask = task.filter_mask;
  const std::uint32_t first = task.feature, feature_step = task.feature_step;
  std::uint32_t found[kRoundedAtOnce];
  for (std::uint32_t i = 0; i < count; ++i) {
    const double x = values[i];
    const auto nearest = static_cast<float>(x);
    const auto wide = static_cast<double>(nearest);
    const auto bits = std::bit_cast<std::uint32_t>(nearest);
    // Bits of negative numbers ascend as the numbers descend.
    const std::uint32_t step = 1 - 2 * (bits >> 31);
    const std::uint32_t above = wide > x ? 1 : 0, between = wide != x ? 1 : 0;
    const std::uint32_t down = bits - step * above, up = down + step * between;
    const std::uint32_t h = hash_of_bound(first + i * feature_step, up) & mask;
    found[i] = filter[h / 32] >> h % 32 & between;
    task.out[i] = std::bit_cast<float>(down);
  }
  std::uint64_t bits = 0;
  for (std::uint32_t i = 0; i < count; ++i) bits |= std::uint64_t{found[i]} << i;
  return bits;
}

}  // namespace forestvm
