// parallel(b0) runs the iterations of a loop in parallel. Over trees, each iteration gets its own copy of the
// accumulators, reduced after the loop (passes/legalize_reductions.cpp).
//
//   for b0 in rows step 64:             par b0 in rows step 64:
//     ...                        ->       ...
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_Parallel(LoopTree& tree, const DirectiveAt& at) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find(at.loop(0)));
  return request(tree, loops, &Loop::parallel, true, at);
}

}  // namespace forestvm::scheduler
