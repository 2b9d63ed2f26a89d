// The normal form of a model, in which every later pass finds it: a split is `x < t` of float32 numbers, a
// missing value is NaN and goes where the split says. All that trainers say otherwise (<=, float64
// thresholds, NaN that counts as 0, tiny numbers that are 0 or missing) becomes such a split, which sends
// every float32 row the same way. Nodes keep their places, so that leaves keep their numbers.
#pragma once

#include <optional>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::scheduler {

/// Nothing if the model has the form already. Refused, with tree and node, where the numbers that go left are
/// not all below those that go right: only Missing::Zero can ask for that. Categories stay as they are.
Result<std::optional<Model>> normal_form(const Model& model);

}  // namespace forestvm::scheduler
