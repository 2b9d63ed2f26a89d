// specialize(t0) chooses a walker of its own for each iteration of a loop over trees: the trees of an
// iteration become a group with its own layout, padding and number of steps. One walk instruction stays, which
// takes its walker from a table by the number of the iteration.
//
//   par t0 in trees step 50:            par t0 in trees step 50:
//     walk(t0, b, w0)            ->       walk(t0, b, w0 … by t0)
#include "scheduler/directives/apply.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::scheduler {

Result<void> apply_Specialize(LoopTree& tree, const DirectiveAt& at) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find(at.loop(0)));
  for (const LoopId loop : loops)
    if (tree[loop].axis != Axis::Trees)
      return refused(
          formatted("loop '{}' goes over rows, and all its iterations walk the same trees", tree[loop].name));
  return request(tree, loops, &Loop::specialize, true, at);
}

}  // namespace forestvm::scheduler
