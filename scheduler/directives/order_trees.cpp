// orderTrees(depth) has the program go through the trees from the shallowest to the deepest,
// orderTrees(class) output by output; equal trees stay in the model's order. Positions in later directives
// (the first 50 trees) count in the new order.
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_OrderTrees(LoopTree& tree, const DirectiveAt& at) {
  return request(tree.program.order, at.loop(0), at);
}

}  // namespace forestvm::scheduler
