// interleave(b1) walks the iterations of an innermost loop in lockstep: all of them together, rounded to a power of
// two, at most kMaxInterleave. Trees of single rows are rounded up, which leaves lanes of a vector empty; in other
// cases the iterations that are left at the end are walked in smaller groups.
//
//   for b1 in b0:                       for b1 in b0 step 16:
//     walk(tree, b1)             ->       walk(tree, b1 … b1+15)
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_Interleave(LoopTree& tree, const DirectiveAt& at) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find(at.loop(0)));
  return request(tree, loops, &Loop::interleave, true, at);
}

}  // namespace forestvm::scheduler
