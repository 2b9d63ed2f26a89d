// The normal form of a model, in which every later pass finds it: a split is `x < t` of float32 numbers, or
// one of categories, of which those in the set go right; a missing value is NaN and goes where the split
// says. All that trainers say otherwise (<=, float64 thresholds, NaN that counts as 0, tiny numbers that are
// 0 or missing) becomes such a split, which sends every float32 row the same way; where missing zeros part
// the numbers in two, the program makes them NaN in its rows first. Nodes keep their places, so that leaves
// keep their numbers.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::scheduler {

bool is_normal(const Model& model);

/// Puts the model into the form, where it is; gives the features whose tiny numbers the program makes NaN,
/// ascending. Refused, with tree and node, where the numbers that go left are not all below those that go
/// right, and other splits of the feature take zero for a number: only Missing::Zero can ask for that; and
/// where tiny numbers below zero are a category and others are not. What is refused is left half done.
Result<std::vector<std::uint32_t>> normalize(Model& model);

}  // namespace forestvm::scheduler
