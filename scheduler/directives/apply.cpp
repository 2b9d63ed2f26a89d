// Directive dispatch, from the rows of schedule.def.
#include "scheduler/directives/apply.hpp"

#include <forestvm/internal/formatted.hpp>

namespace forestvm::scheduler {

std::uint64_t DirectiveAt::number(std::size_t argument, const LoopTree& tree) const {
  const Argument& a = directive.arguments[argument];
  if (a.is_number()) return a.number();
  return a.name() == kTreeCountName ? std::max<std::uint64_t>(1, tree.num_trees()) : kAll;
}

Result<void> check_rewritable(const LoopTree& tree, LoopId v) {
  const Loop& loop = tree[v];
  const char* existing = loop.parallel      ? "parallel"
                         : loop.unroll      ? "unroll"
                         : loop.interleave  ? "interleave"
                         : loop.unroll_walk ? "unrollWalk"
                         : loop.peel_walk   ? "peelWalk"
                         : loop.specialize  ? "specialize"
                         : loop.dimension   ? "gpuDimension"
                         : loop.cache       ? "cache"
                         : loop.reduction   ? "a reduction"
                                            : nullptr;
  if (existing == nullptr) return {};
  return refused(
      formatted("loop '{}' already has {}; write that after this directive, for the loops it makes",
                loop.name, existing));
}

Result<void> request_reduction(LoopTree& tree, const DirectiveAt& at, ReductionRequest reduction) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find(at.loop(0)));
  for (const LoopId loop : loops)
    if (tree[loop].axis != Axis::Trees)
      return refused(formatted(
          "loop '{}' goes over rows, whose iterations have nothing to reduce; sums are made over trees",
          tree[loop].name));
  return request(tree, loops, &Loop::reduction, reduction, at);
}

Result<void> apply(LoopTree& tree, const DirectiveAt& at) {
  switch (at.directive.kind) {
#define FVM_DIRECTIVE(Name, method, required, parameters, meaning) \
  case DirectiveKind::Name:                                        \
    return apply_##Name(tree, at);
#include <forestvm/internal/schedule.def>
  }
  return {};
}

}  // namespace forestvm::scheduler
