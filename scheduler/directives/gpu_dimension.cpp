// gpuDimension(b0, grid.x) maps the iterations of a loop to a dimension of a GPU launch: a block, or a thread
// of a block, for each. A schedule with a mapped loop is for GPUs only.
//
//   for b0 in rows step 64:             map b0 in rows step 64 to grid.x:
//     ...                        ->       ...
#include <forestvm/internal/names.hpp>

#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_GpuDimension(LoopTree& tree, const DirectiveAt& at) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find(at.loop(0)));
  return request(tree, loops, &Loop::dimension, *by_name<LaunchDimension>(at.loop(1)), at);
}

}  // namespace forestvm::scheduler
