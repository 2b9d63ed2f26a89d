// See exact_sums.hpp. The unit is the lowest bit set in any leaf (DART weights included) or base score; the bound
// is the sum of each tree's largest leaf and of the largest base score. Models with leaves of NaN have no exact
// sums.
#include "scheduler/exact_sums.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <forestvm/core/sums.hpp>

#include "scheduler/layouts/builder.hpp"

namespace forestvm {
namespace {

/// Returns the exponent of the lowest bit that is set in a finite number other than 0.
int lowest_bit(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);  // in [0.5, 1)
  const auto bits = static_cast<std::uint64_t>(std::ldexp(std::abs(mantissa), 53));
  return exponent - 53 + __builtin_ctzll(bits);
}

/// Returns true if sums up to `bound` fit `bits` bits. The bound is raised a little, to cover its own rounding.
bool fits(double bound, int unit, int bits) {
  return std::ldexp(bound * (1 + 1e-9), -unit) < std::ldexp(1.0, bits - 1);
}

}  // namespace

ReproducibleSums reproducible_sums(const Model& model) { return scheduler::exact_sums(model); }

namespace scheduler {

namespace {

/// Rounds the model's numbers to the type in which it sums.
template <class Score>
ReproducibleSums exact_sums_of(const Model& model) {
  int unit = kHighestUnit;
  bool any = false;
  double bound = 0;
  const auto see = [&](Score score, double& largest) {
    if (score == 0 || std::isnan(score)) return;
    const auto value = static_cast<double>(score);
    any = true;
    unit = std::min(unit, lowest_bit(value));
    largest = std::max(largest, std::abs(value));
  };
  double largest_base = 0;
  for (const double base : model.base)
    if (std::isfinite(base)) see(static_cast<Score>(base), largest_base);
  for (const Tree& tree : model.trees) {
    double largest = 0;
    for (std::size_t n = 0; n < tree.nodes.size(); ++n)
      if (tree.nodes[n].kind == NodeKind::Leaf)
        see(leaf_output<Score>(tree, static_cast<std::int32_t>(n)), largest);
    bound += largest;
  }
  if (!any) unit = 0;
  bound += largest_base;
  // No integer stands for NaN, the sum of a row without an answer.
  const bool has_unit = unit >= kLowestUnit && !model.may_lack_answers;
  if (has_unit && fits(bound, unit, 64)) return {AccumulatorKind::Exact64, unit};
  if (has_unit && fits(bound, unit, 128)) return {AccumulatorKind::Exact128, unit};
  return {per_tree_kind(model.score_type), 0};
}

}  // namespace

ReproducibleSums exact_sums(const Model& model) {
  if (has_linear_leaves(model)) return {per_tree_kind(model.score_type), 0};
  return model.score_type == ScalarType::Float64 ? exact_sums_of<double>(model) : exact_sums_of<float>(model);
}

}  // namespace scheduler
}  // namespace forestvm
