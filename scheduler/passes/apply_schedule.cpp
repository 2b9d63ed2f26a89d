// Directives -> loop tree. Adds the directive and its location to each error.
#include "scheduler/directives/apply.hpp"

#include <forestvm/internal/formatted.hpp>

#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {

namespace {

/// Limits of the loop tree. Splits copy loops, so that a short schedule could make more of them than memory
/// holds, and the passes recurse as deep as loops are nested.
constexpr std::size_t kMaxLoops = 4096, kMaxNesting = 64;

Result<void> check_size(const LoopTree& tree) {
  if (tree.size() > kMaxLoops) return refused(formatted("the schedule makes more than {} loops", kMaxLoops));
  for (LoopId loop = 0; loop < tree.size(); ++loop)
    if (tree.depth(loop) > kMaxNesting)
      return refused(formatted("more than {} loops inside each other", kMaxNesting));
  return {};
}

}  // namespace

Result<void> apply_schedule(Lowering& lowering) {
  for (std::size_t i = lowering.plan.first_directive; i < lowering.plan.end_directive; ++i) {
    const std::size_t loops = lowering.loops.size();
    Result<void> done = apply(lowering.loops, {lowering.schedule.directives[i], i});
    if (done.ok() && lowering.loops.size() != loops) done = check_size(lowering.loops);
    if (!done.ok()) return lowering.refuse(i, done.error().message);
  }
  return {};
}

}  // namespace forestvm::scheduler
