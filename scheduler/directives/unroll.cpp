// unroll(t1) repeats the body of a loop for each iteration; the number of iterations must be known.
//
//   for t1 in t0:                       t1 = t0[0:1]: ...
//     ...                        ->     t1 = t0[1:2]: ...
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_Unroll(LoopTree& tree, const DirectiveAt& at) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find(at.loop(0)));
  return request(tree, loops, &Loop::unroll, true, at);
}

}  // namespace forestvm::scheduler
