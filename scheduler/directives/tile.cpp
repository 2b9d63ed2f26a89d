// tile(batch, b0, b1, 64) strip-mines a loop. The last chunk may be short, so that any number of rows is covered.
//
//   for batch in rows:                  for b0 in rows step 64:
//     ...                        ->       for b1 in b0:
//                                           ...
#include "scheduler/directives/apply.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::scheduler {

Result<void> apply_Tile(LoopTree& tree, const DirectiveAt& at) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find(at.loop(0)));
  FVM_TRY(tree.check_new_name(at.loop(1)));
  FVM_TRY(tree.check_new_name(at.loop(2)));
  if (at.loop(1) == at.loop(2))
    return refused(formatted("outer and inner loop have the same name '{}'", at.loop(1)));
  for (const LoopId v : loops) FVM_TRY(check_rewritable(tree, v));
  for (const LoopId v : loops) tree.tile(v, at.loop(1), at.loop(2), at.number(3, tree));
  tree.retire(at.loop(0), print(at.directive), {at.loop(1), at.loop(2)});
  return {};
}

}  // namespace forestvm::scheduler
