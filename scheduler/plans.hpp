// Schedule -> its plans.
#pragma once

#include <vector>

#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {

/// More would only be a mistake.
inline constexpr std::size_t kMaxPlans = 16;

/// The plans of a schedule, for ascending numbers of rows, none left out: one if it has no plan directive.
/// Refused, with the directive's place, where they do not ascend or the last is not for BATCH.
Result<std::vector<Plan>> plans_of(const Schedule& schedule);

}  // namespace forestvm::scheduler
