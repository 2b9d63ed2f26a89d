// Float64 values that searches see rounded up to float32, in a program that compares in float64. Its float32 thresholds
// are the bounds of the comparisons rounded up (see core/wide_values.hpp), so a value rounded up has its own rank,
// unless it is equal to a threshold: then the bound may lie above the value. Searches look for such ties, which are
// rare, and take one off the rank where the value is below the bound.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/backend.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm::host {

/// Writes what walks compare for up to kCodeRows rows of a feature to `out`. `rules` are the program's ValueRules.
using ReadColumn = void (*)(const void* rules, const Column& column, std::uint32_t feature, std::size_t row,
                            std::size_t count, float* out);

/// Writes what walks compare for `count` float64 values of a feature, which are `stride` apart.
using ReadDoubles = void (*)(const void* rules, std::uint32_t feature, const double* values,
                             std::size_t stride, std::size_t count, float* out);

/// The rules of a program for its rows' values, and the functions with which encoders apply them.
struct EncoderRules {
  const void* rules;    ///< The program's ValueRules.
  const bool* special;  ///< For each feature, whether its values need more than rounding: see ValueRules.
  bool wide;            ///< True if the program compares in float64.
  ReadColumn read_column;
  ReadDoubles read_doubles;
};

/// The source of values that were not rounded up: a search's ranks are right as they are.
struct AsTheyAre {
  static constexpr bool kRounded = false;
};

/// The float64 values of a feature from which the values of a search were rounded up.
struct RoundedUp {
  static constexpr bool kRounded = true;
  /// The values, at any alignment. Null if the search's values were not rounded up.
  const double* values;
  std::size_t stride;         ///< Number of values from one row to the next.
  const EncoderRules* rules;  ///< Not read if `values` is null.

  /// Returns the right rank of row `r`. A search found the rank `found` for the rounded value `up`, which is equal
  /// to a threshold.
  FVM_INLINE std::uint32_t rank(std::uint32_t feature, unsigned r, float up, std::uint32_t found) const {
    const double* const at = values + r * stride;
    double x;
    __builtin_memcpy(&x, reinterpret_cast<const char*>(at), sizeof x);
    if (static_cast<double>(up) == x) return found;
    float compared;
    rules->read_doubles(rules->rules, feature, at, 1, 1, &compared);
    return compared == up ? found : found - 1;
  }
};

/// Returns the right rank of row `r`, for whose value `value` a search found the rank `found`. `thresholds` ascend.
template <class Source>
FVM_INLINE std::uint32_t settled_rank(const Source& source, std::uint32_t feature, const float* thresholds,
                                      unsigned r, float value, std::uint32_t found) {
  if constexpr (Source::kRounded)
    // `found` may be 0: then the value is below the first threshold, so the comparison with it fails. A branch for
    // that case would be hard to foresee.
    if (thresholds[found - (found != 0 ? 1 : 0)] == value && source.values != nullptr)
      return source.rank(feature, r, value, found);
  return found;
}

}  // namespace forestvm::host
