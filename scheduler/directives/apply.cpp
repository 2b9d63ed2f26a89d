// Directive dispatch, from the rows of schedule.def.
#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {

std::uint64_t DirectiveAt::number(std::size_t argument, const LoopTree& tree) const {
  const Argument& a = directive.arguments[argument];
  if (a.is_number()) return a.number();
  return a.name() == kTreeCountName ? std::max<std::uint64_t>(1, tree.num_trees()) : kAll;
}

Result<void> check_rewritable(const LoopTree& tree, LoopId v) {
  const Loop& loop = tree[v];
  const char* asked = loop.parallel      ? "parallel"
                      : loop.unroll      ? "unroll"
                      : loop.interleave  ? "interleave"
                      : loop.unroll_walk ? "unrollWalk"
                      : loop.peel_walk   ? "peelWalk"
                                         : nullptr;
  if (asked == nullptr) return {};
  return refused("", "loop '" + loop.name + "' already has " + asked +
                         "; write that after this directive, for the loops it makes");
}

namespace {

Error pending(std::string_view word) {
  return refused("", "'" + std::string(word) + "' is not lowered yet by this backend");
}

}  // namespace

Result<void> apply(LoopTree& tree, const DirectiveAt& at) {
  switch (at.directive.kind) {
#define FVM_APPLY_Lowered(Name, method) return apply_##Name(tree, at);
#define FVM_APPLY_Pending(Name, method) return pending(#method);
#define FVM_DIRECTIVE(Name, method, required, parameters, Stage, meaning) \
  case DirectiveKind::Name:                                               \
    FVM_APPLY_##Stage(Name, method)
#include <forestvm/schedule.def>
  }
  return {};
}

}  // namespace forestvm::scheduler
