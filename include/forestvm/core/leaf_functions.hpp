// Leaves whose outputs are linear functions of the row (LightGBM's linear_tree). In: the sections leaf_functions and
// leaf_terms of a program. Walks keep the number of each tree's function, and sum_trees adds what the functions give.
#pragma once

#include <cstdint>

namespace forestvm {

/// The function of a leaf: its constant, then each product of a coefficient and a feature's value, added one after the
/// other in float64. If one of the values is NaN, the output is `value` instead. Values with |x| <= kTiny are 0.
struct LeafFunction {
  double constant;
  double value;
  std::uint32_t first_term;  ///< Index of its first term in the leaf_terms section.
  std::uint32_t term_count;

  bool operator==(const LeafFunction&) const = default;
};
static_assert(sizeof(LeafFunction) == 24);

struct LeafTerm {
  double coefficient;
  std::uint32_t feature;
  std::uint32_t reserved;  ///< Zero.

  bool operator==(const LeafTerm&) const = default;
};
static_assert(sizeof(LeafTerm) == 16);

}  // namespace forestvm
