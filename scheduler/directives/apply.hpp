// What each directive does to the loop tree: one function per row of schedule.def whose stage is Lowered,
// each in a file of its own, whose header shows the nest before and after.
#pragma once

#include <forestvm/schedule.hpp>

#include "scheduler/loop_tree.hpp"

namespace forestvm::scheduler {

/// A directive and its number in the schedule.
struct DirectiveAt {
  const Directive& directive;
  std::size_t index;

  const std::string& loop(std::size_t argument) const { return directive.arguments[argument].name(); }
  /// A Size or Count argument; N_TREES and BATCH have their values.
  std::uint64_t number(std::size_t argument, const LoopTree& tree) const;
};

/// Applies one directive. An error has no place yet: apply_schedule adds the directive's.
Result<void> apply(LoopTree& tree, const DirectiveAt& at);

#define FVM_APPLY_Lowered(Name) Result<void> apply_##Name(LoopTree& tree, const DirectiveAt& at);
#define FVM_APPLY_Pending(Name)
#define FVM_DIRECTIVE(Name, method, required, parameters, Stage, meaning) FVM_APPLY_##Stage(Name)
#include <forestvm/schedule.def>
#undef FVM_APPLY_Lowered
#undef FVM_APPLY_Pending

/// Notes on each loop that the directive's first argument names that it asked for something; twice is an
/// error.
template <class Value>
Result<void> ask(LoopTree& tree, const std::vector<LoopId>& loops, std::optional<Asked<Value>> Loop::*what,
                 Value value, const DirectiveAt& at) {
  for (const LoopId id : loops) {
    if (tree[id].*what)
      return refused("", "loop '" + tree[id].name + "' was given this by directive " +
                             std::to_string((tree[id].*what)->directive + 1) + " already");
    tree[id].*what = Asked<Value>{value, at.index};
  }
  return {};
}

/// An error if v was asked for something that its parts could not both inherit.
Result<void> check_rewritable(const LoopTree& tree, LoopId v);

}  // namespace forestvm::scheduler
