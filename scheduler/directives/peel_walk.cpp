// peelWalk(b1, 3) takes the first hops of each walk without leaf checks. No leaf may be that near to a root.
//
//   while not leaf: hop          ->     hop; hop; hop; while not leaf: hop
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_PeelWalk(LoopTree& tree, const DirectiveAt& at) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find(at.loop(0)));
  return ask(tree, loops, &Loop::peel_walk, static_cast<std::uint32_t>(at.number(1, tree)), at);
}

}  // namespace forestvm::scheduler
