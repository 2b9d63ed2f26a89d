// Sums that no order of additions changes: which form a model's leaves allow.
#pragma once

#include <forestvm/statistics.hpp>

namespace forestvm::scheduler {

/// What sums leaves in the order of their trees, and what keeps every tree's leaf.
constexpr AccumulatorKind sum_kind(ScalarType type) {
  return type == ScalarType::Float64 ? AccumulatorKind::F64 : AccumulatorKind::F32;
}
constexpr AccumulatorKind per_tree_kind(ScalarType type) {
  return type == ScalarType::Float64 ? AccumulatorKind::PerTree64 : AccumulatorKind::PerTree;
}

/// Exact64 or Exact128 where every sum of leaves and base scores fits such a count of the unit; else the
/// per-tree kind: the leaves are kept and added in the model's order.
ReproducibleSums exact_sums(const Model& model);

}  // namespace forestvm::scheduler
