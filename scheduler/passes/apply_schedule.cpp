// Directives -> loop tree. Adds to each error the directive and its place.
#include "scheduler/directives/apply.hpp"
#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {

Result<void> apply_schedule(Lowering& lowering) {
  FVM_TRY(check_schedule(lowering.schedule));
  for (std::size_t i = 0; i < lowering.schedule.directives.size(); ++i) {
    const Result<void> done = apply(lowering.loops, {lowering.schedule.directives[i], i});
    if (!done.ok()) return lowering.refuse(i, done.error().message);
  }
  return {};
}

}  // namespace forestvm::scheduler
