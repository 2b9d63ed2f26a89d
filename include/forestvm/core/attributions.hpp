// The records of approximate contributions (Saabas), as they lie in a file: the attributions of each leaf of a tree to
// features. Little-endian, fixed sizes, no padding bytes.
#pragma once

#include <cstdint>

namespace forestvm {

/// The leaves of a tree of the model, by the trainer's numbers. Section attributed_leaves has at first_leaf + n the
/// index of leaf n's first attribution; its attributions end where those of n + 1 begin. Numbers that no leaf has have
/// none.
struct AttributedTree {
  std::uint32_t first_leaf;  ///< Index of leaf 0 in section attributed_leaves.
  std::uint32_t leaf_count;  ///< One above the largest number.

  bool operator==(const AttributedTree&) const = default;
};
static_assert(sizeof(AttributedTree) == 8);

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
