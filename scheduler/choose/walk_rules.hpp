// The rules by which `auto` chooses walks where their costs cannot be predicted.
#pragma once

#include <vector>

#include "scheduler/choose/walk_choice.hpp"

namespace forestvm::scheduler {

/// Returns plans for all calls, the last for BATCH. Each says why.
std::vector<PlanChoice> plans_by_rules(const ForestFacts& facts);

}  // namespace forestvm::scheduler
