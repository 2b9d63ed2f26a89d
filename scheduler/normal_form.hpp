// The normal form of a model, on which later passes rely. A numerical split is `x < t` in float32; a
// categorical split sends members of its set right; NaN, and nothing else, is missing and goes where the
// split says. Other splits of the trainers (<=, float64 thresholds, NaN that counts as 0, tiny numbers that
// are 0 or missing) are rewritten so that every row goes the same way as before, once its values are what
// RowRules make of them. Nodes keep their numbers, so leaves do too.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/core/wide_values.hpp>
#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::scheduler {

bool is_normal(const Model& model);

/// Returns whether two splits of a tree send every row the same way.
bool same_test(const Node& a, const Node& b);

/// The changes that a program makes to values before its walks compare them.
struct RowRules {
  /// Features, ascending, whose tiny numbers become NaN: zero is missing in their splits, but lies between numbers
  /// that go the other way.
  std::vector<std::uint32_t> zero_missing;
  /// The rules for float64 values in a model that compares in float64: see core/wide_values.hpp.
  std::vector<WideFeature> wide_features;
  std::vector<double> wide_bounds;
};

/// Rewrites the model into the normal form. Refused, with tree and node: a split whose left set is not an interval
/// below its right set while another split of the feature treats 0 as a number (only Missing::Zero can cause this); a
/// set in which tiny numbers below zero are a category and other negative numbers are not. Refused, with the feature:
/// splits of categories and of numbers whose thresholds float32 cannot tell apart. A refused model is left half
/// rewritten.
Result<RowRules> normalize(Model& model);

}  // namespace forestvm::scheduler
