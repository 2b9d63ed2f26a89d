// sharedReduce(t1) keeps the private copies of a mapped loop's sums in the block's shared memory until they
// are reduced. Only GPUs have it.
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_SharedReduce(LoopTree& tree, const DirectiveAt& at) {
  return request_reduction(tree, at, {ReductionForm::Shared, 1});
}

}  // namespace forestvm::scheduler
