// plan(8) begins the schedule of calls of up to 8 rows. The pass cut-plans cuts the schedule there, so that no loop
// tree ever sees it.
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_Plan(LoopTree&, const DirectiveAt&) { FVM_CHECK(false); }

}  // namespace forestvm::scheduler
