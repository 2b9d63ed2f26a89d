// accumulate(f64) chooses how leaves are summed: in f32, in f64, as exact sums, whose bits no order of additions
// changes, or from leaves that are kept and added in the model's order.
// Contracts restrict the choice: see passes/choose_sums.cpp.
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_Accumulate(LoopTree& tree, const DirectiveAt& at) {
  return request(tree.program.accumulate, at.loop(0), at);
}

}  // namespace forestvm::scheduler
