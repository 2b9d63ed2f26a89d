// Random schedules: rewrites that the loop tree accepts, then wishes about how its loops run. What remains
// illegal only the compiler knows.
#pragma once

#include <forestvm/schedule.hpp>

#include "dice.hpp"

namespace forestvm::test {

struct ScheduleWishes {
  unsigned parallel_trees = 10;  ///< percent of the schedules that run trees in parallel
  unsigned plans = 15;           ///< percent of the schedules that are plans
  bool automatic = false;        ///< not random at all: what is chosen for the model
  bool mapped = false;           ///< to a GPU launch, without plans
};

Schedule random_schedule(Dice& dice, std::uint32_t trees, const ScheduleWishes& wishes);

}  // namespace forestvm::test
