// Random schedules: rewrites that the loop tree accepts, then directives for how the loops run. Only the
// compiler knows which of the results are illegal.
#pragma once

#include <forestvm/schedule.hpp>

#include "dice.hpp"

namespace forestvm::test {

struct ScheduleOptions {
  unsigned parallel_trees = 10;  ///< percent of the schedules that run trees in parallel
  unsigned plans = 15;           ///< percent of the schedules that are plans
  bool automatic = false;        ///< true: the automatic schedule of the model instead of a random one
  bool mapped = false;           ///< true: loops are mapped to a GPU launch, and there are no plans
};

Schedule random_schedule(Dice& dice, std::uint32_t trees, const ScheduleOptions& options);

}  // namespace forestvm::test
