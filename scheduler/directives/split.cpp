// split(tree, ta, tb, 50) cuts a loop in two at an iteration. The loops inside it are copied, so that the parts may
// be scheduled differently. Copies keep their names: `batch` then means both copies, `ta.batch` the one inside ta.
//
//   for tree in trees:                  for ta in trees[0:50]:
//     for batch in rows:         ->       for batch in rows: ...
//       ...                             for tb in trees[50:]:
//                                         for batch in rows: ...
#include "scheduler/directives/apply.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::scheduler {

Result<void> apply_Split(LoopTree& tree, const DirectiveAt& at) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find(at.loop(0)));
  FVM_TRY(tree.check_new_name(at.loop(1)));
  FVM_TRY(tree.check_new_name(at.loop(2)));
  if (at.loop(1) == at.loop(2)) return refused(formatted("both parts have the same name '{}'", at.loop(1)));
  for (const LoopId v : loops) FVM_TRY(check_rewritable(tree, v));
  for (const LoopId v : loops) tree.split(v, at.loop(1), at.loop(2), at.number(3, tree));
  tree.retire(at.loop(0), print(at.directive), {at.loop(1), at.loop(2)});
  return {};
}

}  // namespace forestvm::scheduler
