// The plans of a schedule, each from its plan directive to the next, and the calls that they are for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/schedule.hpp>

namespace forestvm::scheduler {

/// The greatest number of rows of a plan: the plan is for all larger calls, too.
inline constexpr std::uint64_t kAnyRows = UINT32_MAX;

/// Returns the CPU targets that a plan is for if it names this one: those with at least its instructions.
TargetSet targets_of_plan(std::string_view target);

struct PlanRange {
  const Directive* directive;  ///< The plan directive; null if the schedule has none and is one plan.
  std::size_t begin, end;      ///< The plan's directives: those with the numbers [begin, end).
  std::uint64_t least, most;   ///< The plan is for calls of `least` to `most` rows.
  std::string target;          ///< The CPU target that it names; empty if it names none.
  bool shares_rows;            ///< Whether the plan before is for the same rows on another target.

  /// Returns the CPU targets that the plan is for, where no plan before it is for the same rows.
  TargetSet targets() const { return targets_of_plan(target); }
};

/// Returns the plan for calls of `rows` rows on a CPU; null if there is none. `plans` have the fields of PlanRange.
template <class Plan>
const Plan* plan_for(const std::vector<Plan>& plans, std::uint64_t rows, CpuTarget cpu) {
  for (const Plan& plan : plans)
    if (plan.least <= rows && rows <= plan.most && contains(targets_of_plan(plan.target), cpu)) return &plan;
  return nullptr;
}

/// Returns the plans of a schedule, which need not be legal. Directives before the first plan directive belong to no
/// plan.
std::vector<PlanRange> plan_ranges(const Schedule& schedule);

}  // namespace forestvm::scheduler
