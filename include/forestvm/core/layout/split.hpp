// The one test that all layouts make at a split.
#pragma once

#include <cstdint>

#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

/// Returns whether a row goes left at a split: its value of the feature is below the threshold, or it is
/// missing (NaN) and the split sends missing values left. It has no branches. Row gives a feature's value by
/// [], and is often a pointer.
template <class Row>
FVM_INLINE bool goes_left(float threshold, std::uint32_t feature_word, Row row) {
  const float x = row[feature_word & kFeatureMask];
  return (x < threshold) | ((x != x) & ((feature_word & kMissingLeft) != 0));
}

}  // namespace forestvm
