// The unit is the lowest bit set in any leaf (DART weights included) or base score; the bound is the sum of
// each tree's largest leaf and of the largest base score.
#include "scheduler/exact_sums.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <forestvm/core/sums.hpp>

#include "scheduler/layouts/builder.hpp"

namespace forestvm {
namespace {

/// Exponent of the lowest bit that is set in a finite float32 other than 0.
int lowest_bit(float value) {
  int exponent = 0;
  const float mantissa = std::frexp(value, &exponent);  // in [0.5, 1)
  const auto bits = static_cast<std::uint32_t>(std::ldexp(std::abs(mantissa), 24));
  return exponent - 24 + __builtin_ctz(bits);
}

/// A little is added so that the rounding of the bound itself cannot matter.
bool fits(double bound, int unit, int bits) {
  return std::ldexp(bound * (1 + 1e-9), -unit) < std::ldexp(1.0, bits - 1);
}

}  // namespace

ReproducibleSums reproducible_sums(const Model& model) { return scheduler::exact_sums(model); }

namespace scheduler {

ReproducibleSums exact_sums(const Model& model) {
  int unit = kHighestUnit;
  bool any = false;
  double bound = 0;
  const auto see = [&](float value, double& largest) {
    if (value == 0) return;
    any = true;
    unit = std::min(unit, lowest_bit(value));
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  };
  double largest_base = 0;
  for (const double base : model.base) see(static_cast<float>(base), largest_base);
  for (const Tree& tree : model.trees) {
    double largest = 0;
    for (std::size_t n = 0; n < tree.nodes.size(); ++n)
      if (tree.nodes[n].kind == NodeKind::Leaf) see(leaf_output(tree, static_cast<std::int32_t>(n)), largest);
    bound += largest;
  }
  if (!any) unit = 0;
  bound += largest_base;
  if (fits(bound, unit, 64)) return {AccumulatorKind::Exact64, unit};
  if (fits(bound, unit, 128)) return {AccumulatorKind::Exact128, unit};
  return {AccumulatorKind::PerTree, 0};
}

}  // namespace scheduler
}  // namespace forestvm
