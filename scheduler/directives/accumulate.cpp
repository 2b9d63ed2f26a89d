// accumulate(f64) chooses the type of the sums: f32, f64, or exact, whose bits no order of additions changes.
// Contracts restrict the choice: see passes/choose_sums.cpp.
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_Accumulate(LoopTree& tree, const DirectiveAt& at) {
  return request(tree.program.accumulate, at.loop(0), at);
}

}  // namespace forestvm::scheduler
