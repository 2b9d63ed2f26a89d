// Sums whose bits do not depend on the order of additions, and the form of them that a model's leaves allow.
#pragma once

#include <forestvm/statistics.hpp>

namespace forestvm::scheduler {

/// The kinds of accumulators for scores of a type: one adds leaves as they come, the other keeps every tree's
/// leaf.
constexpr AccumulatorKind sum_kind(ScalarType type) {
  return type == ScalarType::Float64 ? AccumulatorKind::F64 : AccumulatorKind::F32;
}
constexpr AccumulatorKind per_tree_kind(ScalarType type) {
  return type == ScalarType::Float64 ? AccumulatorKind::PerTree64 : AccumulatorKind::PerTree;
}

/// Returns Exact64 or Exact128 where every sum of leaves and base scores fits such a count of the unit; else
/// the per-tree kind, which keeps the leaves and adds them in the model's order.
ReproducibleSums exact_sums(const Model& model);

}  // namespace forestvm::scheduler
