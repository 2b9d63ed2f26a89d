// Lists of records for each leaf of a tree, as they lie in a file: what approximate contributions and quantiles read of
// the leaves that a row reaches. Little-endian, fixed sizes, no padding bytes.
#pragma once

#include <cstdint>

#include <forestvm/core/platform.hpp>

namespace forestvm {

/// The leaves of a tree of the model, by the trainer's numbers. A section of indices has at first_leaf + n the index of
/// leaf n's first record; its records end where those of n + 1 begin. Numbers that no leaf has have none.
struct NumberedLeaves {
  std::uint32_t first_leaf;  ///< Index of leaf 0 in the section of indices.
  std::uint32_t leaf_count;  ///< One above the largest number.

  bool operator==(const NumberedLeaves&) const = default;
};
static_assert(sizeof(NumberedLeaves) == 8);

/// The records of a leaf: those with the indices from `begin` on, before `end`.
struct LeafList {
  std::uint32_t begin, end;
};

/// Returns the records of leaf `number`; none if the tree has no such leaf, which is in a damaged program only.
/// `indices` is the section of indices.
FVM_HOST_DEVICE inline LeafList leaf_list(const NumberedLeaves& tree, const std::uint32_t* indices,
                                          std::int32_t number) {
  const auto leaf = static_cast<std::uint32_t>(number);
  if (leaf >= tree.leaf_count) return {0, 0};
  const std::uint32_t* const at = indices + tree.first_leaf + leaf;
  return {at[0], at[1]};
}

}  // namespace forestvm
