// atomicReduce(t0) lets the parallel iterations of a loop over trees add to the same sums atomically, instead
// of giving each its own copy of them.
//
//   par t0 in trees step 50:            par t0 in trees step 50:
//     private1 = privatize(…)    ->       … reduce(result[b], p) atomically
//   result += reduce(private1)
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_AtomicReduce(LoopTree& tree, const DirectiveAt& at) {
  return request_reduction(tree, at, {ReductionForm::Plain, 1, true});
}

}  // namespace forestvm::scheduler
