// The normal form of a model, on which later passes rely. A numerical split is `x < t` in float32; a
// categorical split sends members of its set right; NaN, and nothing else, is missing and goes where the
// split says. Other splits of the trainers (<=, float64 thresholds, NaN that counts as 0, tiny numbers that
// are 0 or missing) are rewritten so that every float32 row goes the same way as before. Where zero is
// missing but lies between numbers that go the other way, the program turns the feature's tiny numbers into
// NaN first. Nodes keep their numbers, so leaves do too.
#pragma once

#include <cstdint>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::scheduler {

bool is_normal(const Model& model);

/// Rewrites the model into the normal form. Returns the features whose tiny numbers the program makes NaN,
/// ascending. Refuses, with tree and node, a split whose left set is not an interval below its right set while
/// another split of the feature treats 0 as a number (only Missing::Zero can cause this), and a set in which tiny
/// numbers below zero are a category and other negative numbers are not. A refused model is left
/// half rewritten.
Result<std::vector<std::uint32_t>> normalize(Model& model);

}  // namespace forestvm::scheduler
