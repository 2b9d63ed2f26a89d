// Lists of records for each leaf of a tree, as they lie in a file: what approximate contributions and quantiles read of
// the leaves that a row reaches. Little-endian, fixed sizes, no padding bytes.
#pragma once

#include <cstdint>

namespace forestvm {

/// The leaves of a tree of the model, by the trainer's numbers. A section of indices has at first_leaf + n the index of
/// leaf n's first record; its records end where those of n + 1 begin. Numbers that no leaf has have none.
struct NumberedLeaves {
  std::uint32_t first_leaf;  ///< Index of leaf 0 in the section of indices.
  std::uint32_t leaf_count;  ///< One above the largest number.

  bool operator==(const NumberedLeaves&) const = default;
};
static_assert(sizeof(NumberedLeaves) == 8);

}  // namespace forestvm
