// What each directive does to the loop tree: one function per row of schedule.def, each in a file of its own,
// whose header shows the nest before and after.
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

#define FVM_DIRECTIVE(Name, method, required, parameters, meaning) \
  Result<void> apply_##Name(LoopTree& tree, const DirectiveAt& at);
#include <forestvm/internal/schedule.def>

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

/// Notes the same of what is asked of the whole program.
template <class Value>
Result<void> ask(std::optional<Asked<Value>>& what, Value value, const DirectiveAt& at) {
  if (what)
    return refused("", "directive " + std::to_string(what->directive + 1) + " asked for this already");
  what = Asked<Value>{std::move(value), at.index};
  return {};
}

/// atomicReduce, sharedReduce, vectorReduce.
Result<void> ask_for_reduction(LoopTree& tree, const DirectiveAt& at, ReductionWish wish);

/// An error if v was asked for something that its parts could not both inherit.
Result<void> check_rewritable(const LoopTree& tree, LoopId v);

}  // namespace forestvm::scheduler
