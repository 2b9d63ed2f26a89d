// orderTrees(depth) has the program go through the trees from the shallowest to the deepest,
// orderTrees(class) output by output; trees that are equal so stay in the model's order. What later
// directives call the first 50 trees are then the first 50 of that order.
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_OrderTrees(LoopTree& tree, const DirectiveAt& at) {
  return ask(tree.program.order, at.loop(0), at);
}

}  // namespace forestvm::scheduler
