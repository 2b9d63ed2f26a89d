// The directives' effects on the loop tree: one function per row of schedule.def, each in a file of its own,
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
  /// Returns a Size or Count argument; N_TREES and BATCH have their values.
  std::uint64_t number(std::size_t argument, const LoopTree& tree) const;
};

/// Applies one directive. Its error has no location: apply_schedule adds the directive's.
Result<void> apply(LoopTree& tree, const DirectiveAt& at);

#define FVM_DIRECTIVE(Name, method, required, parameters, meaning) \
  Result<void> apply_##Name(LoopTree& tree, const DirectiveAt& at);
#include <forestvm/internal/schedule.def>

/// Records a directive's value at each of the loops. Refuses a loop to which an earlier directive gave a value.
template <class Value>
Result<void> request(LoopTree& tree, const std::vector<LoopId>& loops,
                     std::optional<Requested<Value>> Loop::*what, Value value, const DirectiveAt& at) {
  for (const LoopId id : loops) {
    if (tree[id].*what)
      return refused("loop '" + tree[id].name + "' was given this by directive " +
                     std::to_string((tree[id].*what)->directive + 1) + " already");
    tree[id].*what = Requested<Value>{value, at.index};
  }
  return {};
}

/// Records a directive's value for the whole program. Refuses it if an earlier directive gave one.
template <class Value>
Result<void> request(std::optional<Requested<Value>>& what, Value value, const DirectiveAt& at) {
  if (what) return refused("directive " + std::to_string(what->directive + 1) + " asked for this already");
  what = Requested<Value>{std::move(value), at.index};
  return {};
}

/// Applies atomicReduce, sharedReduce or vectorReduce. Refuses loops over rows.
Result<void> request_reduction(LoopTree& tree, const DirectiveAt& at, ReductionRequest reduction);

/// Refuses to tile or split a loop that has a directive which the loops it becomes could not both inherit.
Result<void> check_rewritable(const LoopTree& tree, LoopId v);

}  // namespace forestvm::scheduler
