// The records of approximate contributions (Saabas), as they lie in a file: the attributions of leaves to features.
// Little-endian, fixed sizes, no padding bytes. The trees' leaves (see leaf_lists.hpp) stand one tree after the other.
#pragma once

#include <cstdint>

namespace forestvm {

/// A leaf's attribution to a feature, for an output of the model.
struct Attribution {
  /// Sum of the changes of the mean score at the feature's splits, on the way from the root to the leaf. It is a
  /// float32 number in programs with float32 scores.
  double value;
  std::uint32_t index;     ///< Output x (features + 1) + feature.
  std::uint32_t reserved;  ///< Zero.
};
static_assert(sizeof(Attribution) == 16);

}  // namespace forestvm
