// reorder(b0, tree, b1) permutes loops of a perfect nest. Loops of the nest that it does not name stay where
// they are.
//
//   for b0 in rows step 64:             for b0 in rows step 64:
//     for b1 in b0:              ->       for tree in trees:
//       for tree in trees: ...              for b1 in b0: ...
#include <algorithm>

#include <forestvm/internal/formatted.hpp>

#include "scheduler/directives/apply.hpp"

namespace forestvm::scheduler {
namespace {

/// Returns the loops from `top` down to `bottom`; an error unless each contains nothing but the next.
Result<std::vector<LoopId>> chain(const LoopTree& tree, LoopId top, LoopId bottom) {
  std::vector<LoopId> loops{bottom};
  while (loops.back() != top) {
    const LoopId above = tree[loops.back()].parent;
    if (tree[above].children.size() != 1)
      return refused(formatted("the nest is not perfect: loop '{}' contains {} loops", tree[above].name,
                               tree[above].children.size()));
    loops.push_back(above);
  }
  std::reverse(loops.begin(), loops.end());
  return loops;
}

/// Returns the loop of this name that is nested with `anchor`.
Result<LoopId> partner(const LoopTree& tree, const std::string& name, LoopId anchor) {
  FVM_ASSIGN(const std::vector<LoopId> loops, tree.find(name));
  LoopId found = kNoLoop;
  for (const LoopId loop : loops) {
    if (!tree.inside(loop, anchor) && !tree.inside(anchor, loop)) continue;
    if (found != kNoLoop)
      return refused(formatted("the nest is not perfect: loop '{}' is nested with more than one '{}'",
                               tree[anchor].name, name));
    found = loop;
  }
  if (found == kNoLoop)
    return refused(formatted("loops '{}' and '{}' are not nested in each other", tree[anchor].name, name));
  return found;
}

Result<void> reorder_nest(LoopTree& tree, std::vector<LoopId> wanted) {
  const auto outer = [&](LoopId a, LoopId b) { return tree.depth(a) < tree.depth(b); };
  const LoopId top = *std::min_element(wanted.begin(), wanted.end(), outer);
  const LoopId bottom = *std::max_element(wanted.begin(), wanted.end(), outer);
  FVM_ASSIGN(const std::vector<LoopId> loops, chain(tree, top, bottom));
  std::vector<LoopId> order = loops;
  auto next = wanted.begin();
  for (LoopId& slot : order)
    if (std::find(wanted.begin(), wanted.end(), slot) != wanted.end()) slot = *next++;
  if (next != wanted.end())
    return refused(formatted("loop '{}' is not in the nest from '{}' to '{}'", tree[*next].name,
                             tree[top].name, tree[bottom].name));
  for (std::size_t i = 0; i < order.size(); ++i)
    if (std::find(order.begin() + static_cast<std::ptrdiff_t>(i), order.end(), tree[order[i]].source) !=
        order.end())
      return refused(formatted("loop '{}' steps through an iteration of '{}' and cannot be outside it",
                               tree[order[i]].name, tree[tree[order[i]].source].name));
  tree.permute(loops, order);
  return {};
}

}  // namespace

Result<void> apply_Reorder(LoopTree& tree, const DirectiveAt& at) {
  for (std::size_t i = 0; i < at.directive.arguments.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (at.loop(i) == at.loop(k)) return refused(formatted("loop '{}' is named twice", at.loop(i)));
  FVM_ASSIGN(const std::vector<LoopId> anchors, tree.find(at.loop(0)));
  for (const LoopId anchor : anchors) {
    std::vector<LoopId> wanted{anchor};
    for (std::size_t i = 1; i < at.directive.arguments.size(); ++i) {
      FVM_ASSIGN(const LoopId loop, partner(tree, at.loop(i), anchor));
      wanted.push_back(loop);
    }
    FVM_TRY(reorder_nest(tree, std::move(wanted)));
  }
  return {};
}

}  // namespace forestvm::scheduler
