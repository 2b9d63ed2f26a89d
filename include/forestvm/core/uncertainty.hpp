// The rules by which a program says how sure it is, as files hold them. Little-endian, fixed sizes, no padding bytes.
#pragma once

#include <cstdint>

namespace forestvm {

/// The meaning of a model's uncertainty. The members are CatBoost's virtual ensembles, unless the rule is Trees.
enum class UncertaintyRule : std::uint8_t {
  None = 0,    ///< The model has no uncertainty.
  Scores = 1,  ///< Mean and variance of the members' raw scores: a regression.
  Gaussian =
      2,  ///< Mean and variance of the members' first scores, and the mean of the variances that the second predict.
  Binary = 3,  ///< Mean entropy of the members' two probabilities, and the entropy of their mean.
  Classes =
      4,  ///< Mean entropy of the softmax of each member's raw scores, and the entropy of the mean softmax.
  Trees = 5,  ///< Mean and variance of the scores that single trees give: a forest that averages its trees.
};
inline constexpr std::uint8_t kUncertaintyRules = 6;

/// The uncertainty of a program that keeps every tree's leaf.
struct UncertaintyDesc {
  UncertaintyRule rule;
  std::uint8_t reserved[3];  ///< Zero.
  /// The part of the earlier trees' scores that training took away in each round, from 0 to below 1. A virtual ensemble
  /// that ends before the last round is multiplied by what was taken after it.
  float shrinkage;
};
static_assert(sizeof(UncertaintyDesc) == 8);

}  // namespace forestvm
