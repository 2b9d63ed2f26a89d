// The records of approximate contributions (Saabas), as they lie in a file: what each leaf of a tree attributes to
// features. Little-endian, fixed sizes, no padding bytes.
#pragma once

#include <cstdint>

namespace forestvm {

/// The leaves of a tree of the model, by the trainer's numbers. Section attributed_leaves has for each of them, and for
/// numbers that no leaf has, the index of its first attribution; the last is that before which the next one's begin.
struct AttributedTree {
  std::uint32_t first_leaf;  ///< Index of the number 0 in section attributed_leaves.
  std::uint32_t leaf_count;  ///< One above the largest number.

  bool operator==(const AttributedTree&) const = default;
};
static_assert(sizeof(AttributedTree) == 8);

/// What a leaf attributes to a feature for an output: the changes of the mean score on the way from the root at splits
/// of the feature. Numbers of programs with float32 scores are float32 numbers.
struct Attribution {
  double value;
  std::uint32_t place;     ///< Output x (features + 1) + feature.
  std::uint32_t reserved;  ///< Zero.
};
static_assert(sizeof(Attribution) == 16);

}  // namespace forestvm
