// How an encoder picks the values of its features from float64 rows, of which it may read few. Each row is read
// once from its beginning to its end, an order that processors foresee, and only the values that were picked are
// rounded and transposed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace forestvm::host {

struct FeatureSearch;

/// The number of consecutive values of a row from which a step picks.
inline constexpr std::uint32_t kWindow = 16;
/// The most values that a step picks: as many as a vector holds.
inline constexpr std::uint32_t kPickedAtOnce = 8;

/// Picks values in a window of a row.
struct PickStep {
  std::uint64_t indices[kPickedAtOnce];  ///< Indices in the window, ascending, `count` of them; then zeros.
  std::uint32_t first;                   ///< Number of the row's value with which the window begins.
  std::uint32_t count;                   ///< Number of values that are picked.
};

/// The most features of a strip. The picked values of a block of rows fit the first-level cache.
inline constexpr std::uint32_t kStripFeatures = 64;
/// Distance from a row's picked values to the next row's. It has room for a whole vector, because steps write whole
/// vectors.
inline constexpr std::uint32_t kPickedStride = kStripFeatures + kPickedAtOnce;

/// Features whose values are picked together, and the steps that pick them, in the order of the features. Windows end
/// inside rows of kWindow values or more.
struct PickStrip {
  std::span<const FeatureSearch> features;
  std::span<const PickStep> steps;
};

}  // namespace forestvm::host
