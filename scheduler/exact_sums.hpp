// Sums whose bits do not depend on the order of additions, and the form of them that a model's leaves allow.
#pragma once

#include <forestvm/internal/statistics.hpp>

namespace forestvm::scheduler {

/// These return the kinds of accumulators for scores of a type: sum_kind adds leaves as they come, per_tree_kind
/// keeps every tree's leaf.
constexpr AccumulatorKind sum_kind(ScalarType type) {
  return type == ScalarType::Float64 ? AccumulatorKind::F64 : AccumulatorKind::F32;
}
constexpr AccumulatorKind per_tree_kind(ScalarType type) {
  return type == ScalarType::Float64 ? AccumulatorKind::PerTree64 : AccumulatorKind::PerTree;
}

/// Returns Exact64 or Exact128 if such a count of the unit can hold every sum of leaves and base scores; otherwise
/// the per-tree kind, which keeps the leaves and adds them in the model's order.
ReproducibleSums exact_sums(const Model& model);

}  // namespace forestvm::scheduler
