// Checks every model, whatever its format, before load_model returns it. In: a Model. Out: success, or the first thing
// wrong with it. The scheduler, the reference predictor, samples of leaves and partial
// dependence rely on what is checked here.
#pragma once

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "frontend/parsed_model.hpp"

namespace forestvm::frontend {

/// Refuses a model whose parts disagree in size; with a number that is not finite (thresholds of LessEqual
/// may be infinite), or not exact in score_type; with a feature or output out of range; or with a tree that
/// is not one: a child out of range, a node with two parents (so no cycle) or with none. `where` is "tree 3,
/// node 7", after "<location of the tree>: " if that is given.
Result<void> check_model(const Model& model, const TreeLocation& location = {});

}  // namespace forestvm::frontend
