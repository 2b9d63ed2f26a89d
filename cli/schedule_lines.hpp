// Prints schedules, and the points of spaces of schedules, as lines for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "cli/command.hpp"
#include "scheduler/choose/schedule_space.hpp"

namespace forestvm::cli {

/// Returns the directives of a schedule's text on one line, without remarks: "tile(batch, b0, b1, 64); parallel(b0)".
std::string one_line(std::string_view schedule);

/// A plan of a schedule's text, and why it was chosen.
struct PlanRemark {
  std::uint64_t least, most;  ///< The plan is for calls of `least` to `most` rows.
  std::string rows;           ///< "1 row", "2 to 16 rows on avx512", "17 rows and more".
  std::string remark;         ///< Why the plan was chosen; empty if the schedule does not say.
};

/// Returns the plans of a schedule's text; none if it has no plan directive, or is no schedule.
std::vector<PlanRemark> plan_remarks(std::string_view schedule);

/// Says how schedules that add in another order than the trainer become legal.
inline constexpr const char* kOtherContracts =
    "The contract trainer keeps the order in which trainers add; with --contract reproducible or fast others are legal.";

/// Prints every point of a space, each as soon as it is compiled: whether its schedule is legal for the model and its
/// contract, and if not, why.
Result<void> list_space(const scheduler::ScheduleSpace& space, const Model& model, Contract contract);

}  // namespace forestvm::cli
