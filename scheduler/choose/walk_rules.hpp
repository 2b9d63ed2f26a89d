// The rules by which `auto` chooses walks where their costs cannot be predicted.
#pragma once

#include <vector>

#include "scheduler/choose/walk_choice.hpp"
#include "scheduler/choose/walk_features.hpp"

namespace forestvm::scheduler {

/// Returns whether walks through top tables are faster than all others in such calls of a model.
bool top_tables_are_faster(const ForestFacts& facts, const WalkCall& call);

/// Returns plans for all calls, the last for BATCH. Each says why.
std::vector<PlanChoice> plans_by_rules(const ForestFacts& facts);

}  // namespace forestvm::scheduler
