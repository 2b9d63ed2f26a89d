// cache(b0) keeps the rows, or the trees, of one iteration of a loop in the cache. The host prefetches a
// later iteration: the next, or with cache(b0, 4) the fourth from now. A GPU keeps the current iteration in
// the block's shared memory; with cache(t0, 1), for a loop over trees that is not mapped, it copies the next
// iteration's trees while it walks the current ones.
//
//   for t0 in trees step 8:             for t0 in trees step 8:
//     ...                        ->       cacheTrees(t0, ahead 1)
//                                         ...
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

Result<void> apply_Cache(LoopTree& tree, const DirectiveAt& at) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find(at.loop(0)));
  const bool said = at.directive.arguments.size() > 1;
  return request(tree, loops, &Loop::cache, said ? static_cast<std::uint32_t>(at.number(1, tree)) : 0u, at);
}

}  // namespace forestvm::scheduler
