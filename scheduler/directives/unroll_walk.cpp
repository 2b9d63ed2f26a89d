// unrollWalk(b1) walks every tree by a fixed number of steps, without leaf checks; unrollWalk(b1, n) takes
// only the first n steps without them. Leaves above the last of these steps are padded.
//
//   while not leaf: step        ->     step; step; step
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_UnrollWalk(LoopTree& tree, const DirectiveAt& at) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find(at.loop(0)));
  return request(
      tree, loops, &Loop::unroll_walk,
      at.directive.arguments.size() > 1 ? static_cast<std::uint32_t>(at.number(1, tree)) : std::uint32_t{0},
      at);
}

}  // namespace forestvm::scheduler
