// layout(tree, sparse) chooses the memory layout of the trees that a loop walks. A loop that was tiled or
// split stands for the loops that it became; of nested loops, the innermost that has a layout decides.
#include "scheduler/directives/apply.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::scheduler {

Result<void> apply_Layout(LoopTree& tree, const DirectiveAt& at) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find_family(at.loop(0)));
  for (const LoopId loop : loops)
    if (tree[loop].axis != Axis::Trees)
      return refused(
          formatted("loop '{}' goes over rows; a layout belongs to a loop over trees", tree[loop].name));
  return request(tree, loops, &Loop::layout, at.loop(1), at);
}

}  // namespace forestvm::scheduler
