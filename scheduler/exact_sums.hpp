// Sums that no order of additions changes: which form a model's leaves allow.
#pragma once

#include <forestvm/compile.hpp>

namespace forestvm::scheduler {

/// Exact64 or Exact128 where every sum of leaves and base scores fits such a count of the unit; else PerTree:
/// the leaves are kept and added in the model's order.
ReproducibleSums exact_sums(const Model& model);

}  // namespace forestvm::scheduler
