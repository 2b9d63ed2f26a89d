// Rounds many float64 values down to float32 at once: see core/wide_values.hpp. Each CPU target compiles it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <forestvm/core/platform.hpp>

namespace forestvm {

inline constexpr std::uint32_t kBoundFactor = 0x9e3779b1, kFeatureFactor = 0x85ebca6b,
                               kMixFactor = 0x2c1b3c6d;

/// The most values that a RoundFunction takes.
inline constexpr std::uint32_t kRoundedAtOnce = 64;

/// Up to kRoundedAtOnce float64 values.
struct RoundTask {
  const double* values;  ///< The values, or the row from which they are picked. They need no alignment.
  std::uint32_t count;
  const std::uint32_t* features;  ///< The feature of each value.
  const std::uint32_t* filter;    ///< A bit for each hash of a bound.
  std::uint32_t filter_mask;      ///< Number of bits less one.
  float* out;                     ///< Receives the values, rounded down.
  bool picked;                    ///< True if value i is values[features[i]], and goes to out[features[i]].
  /// Tests before the filter, for values of features that follow one another: see RunTests. They need no gather, and
  /// few values pass them where features have few bounds. Null if there are none.
  const std::uint32_t* run_tests = nullptr;
  std::size_t run_stride = 0;  ///< Number of elements from one array of `run_tests` to the next.

  FVM_INLINE std::uint32_t index(std::uint32_t i) const { return picked ? features[i] : i; }
  FVM_INLINE double value(std::uint32_t i) const {
    double x;
    __builtin_memcpy(&x, reinterpret_cast<const char*>(values + index(i)), sizeof x);
    return x;
  }
};

/// The arrays of a RoundTask's run_tests, each with an element for each value: what is common to the float32 numbers
/// just above the bounds of its feature. A function may leave these tests out.
enum RunTests : unsigned {
  kAgreeing,  ///< A mask of the bits in which these numbers agree.
  kPattern,   ///< One of these numbers, from which the values of the bits in the mask are taken.
  kListed,    ///< The run_bit of each of these numbers; none if the feature has no bounds.
};

/// Returns a bit that depends on a number.
FVM_INLINE std::uint32_t run_bit(std::uint32_t up_bits) {
  return std::uint32_t{1} << (up_bits * kBoundFactor >> 27);
}

/// Returns a bit for each value: 1 if a bound of its feature may lie below it, between its neighbours, so that it may
/// have to be rounded up.
using RoundFunction = std::uint64_t (*)(const RoundTask& task);
static_assert(kRoundedAtOnce <= 64);

/// Returns a hash of the bounds of a feature that lie just below `up`.
FVM_INLINE std::uint32_t hash_of_bound(std::uint32_t feature, std::uint32_t up_bits) {
  // Multiplies and shifts as MurmurHash3 ends: thresholds differ in few bits.
  std::uint32_t h = up_bits * kBoundFactor ^ feature * kFeatureFactor;
  h ^= h >> 15;
  h *= kMixFactor;
  return h ^ h >> 13;
}

/// Does what a RoundFunction does, without branches, so that compilers turn it into vector code. It is inlined
/// because each CPU target compiles it.
FVM_INLINE std::uint64_t round_down(const RoundTask& task) {
  // Works on copies, because compilers must see that no store changes what is read.
  const std::uint32_t* const filter = task.filter;
  const std::uint32_t count = task.count, mask = task.filter_mask;
  const std::uint32_t* const features = task.features;
  std::uint32_t found[kRoundedAtOnce];
  float rounded[kRoundedAtOnce];
  for (std::uint32_t i = 0; i < count; ++i) {
    const double x = task.value(i);
    const auto nearest = static_cast<float>(x);
    const auto wide = static_cast<double>(nearest);
    const auto bits = std::bit_cast<std::uint32_t>(nearest);
    // Bits of negative numbers ascend as the numbers descend.
    const std::uint32_t step = 1 - 2 * (bits >> 31);
    const std::uint32_t above = wide > x ? 1 : 0, between = wide != x ? 1 : 0;
    const std::uint32_t down = bits - step * above, up = down + step * between;
    const std::uint32_t h = hash_of_bound(features[i], up) & mask;
    found[i] = filter[h / 32] >> h % 32 & between;
    rounded[i] = std::bit_cast<float>(down);
  }
  if (task.picked)
    for (std::uint32_t i = 0; i < count; ++i) task.out[features[i]] = rounded[i];
  else
    std::memcpy(task.out, rounded, count * sizeof(float));
  std::uint64_t bits = 0;
  for (std::uint32_t i = 0; i < count; ++i) bits |= std::uint64_t{found[i]} << i;
  return bits;
}

}  // namespace forestvm
