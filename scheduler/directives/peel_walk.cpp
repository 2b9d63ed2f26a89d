// peelWalk(b1, 3) takes the first steps of each walk without leaf checks. It is refused if a leaf is nearer
// to its root.
//
//   while not leaf: step          ->     step; step; step; while not leaf: step
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_PeelWalk(LoopTree& tree, const DirectiveAt& at) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find(at.loop(0)));
  return request(tree, loops, &Loop::peel_walk, static_cast<std::uint32_t>(at.number(1, tree)), at);
}

}  // namespace forestvm::scheduler
