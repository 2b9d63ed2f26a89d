// The records of quantiles, as they lie in a file: the training rows that reach each leaf of a tree. Little-endian,
// fixed sizes, no padding bytes.
#pragma once

#include <cstdint>

namespace forestvm {

/// The leaves of a tree of the model, by the trainer's numbers. Section sampled_leaves has at first_leaf + n the index
/// of leaf n's first row in section sample_targets; its rows end where those of n + 1 begin. Numbers that no leaf has
/// have no rows.
struct SampledTree {
  std::uint32_t first_leaf;  ///< Index of leaf 0 in section sampled_leaves.
  std::uint32_t leaf_count;  ///< One above the largest number.

  bool operator==(const SampledTree&) const = default;
};
static_assert(sizeof(SampledTree) == 8);

}  // namespace forestvm
