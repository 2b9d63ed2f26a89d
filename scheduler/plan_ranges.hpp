// The plans of a schedule, each from its plan directive to the next, and the calls that they are for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/schedule.hpp>

namespace forestvm::scheduler {

/// The greatest number of rows of a plan: the plan is for all larger calls, too.
inline constexpr std::uint64_t kAnyRows = UINT32_MAX;

struct PlanRange {
  const Directive* directive;  ///< The plan directive; null if the schedule has none and is one plan.
  std::size_t begin, end;      ///< The plan's directives: those with the numbers [begin, end).
  std::uint64_t least, most;   ///< The plan is for calls of `least` to `most` rows.
  std::string target;          ///< The CPU target that it names; empty if it names none.
  bool shares_rows;            ///< Whether the plan before is for the same rows on another target.
};

/// Returns the plans of a schedule, which need not be legal. Directives before the first plan directive belong to no
/// plan.
std::vector<PlanRange> plan_ranges(const Schedule& schedule);

}  // namespace forestvm::scheduler
