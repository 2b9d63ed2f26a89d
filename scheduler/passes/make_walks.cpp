// Loop tree -> walk sites. The walk instruction walks a range of trees by a range of rows, so it can be the
// innermost loops of both axes, as long as they are serial and nothing else is inside them:
//
//   par b0 in rows step 64:                      par b0 in rows step 64:
//     for tree in trees:                  ->       walk trees x b0, trees outer
//       for b1 in b0: walk(tree, b1)
//
// Loops over the same axis that step through each other join into one, in the same order of visits.
#include <algorithm>
#include <bit>

#include <forestvm/internal/formatted.hpp>

#include "scheduler/lowering.hpp"

namespace forestvm::scheduler {
namespace {

bool absorbable(const Loop& loop) {
  return !loop.parallel_by() && !loop.unroll && !loop.specialize && !loop.cache && loop.children.size() <= 1;
}

/// Absorbs loops over one axis from `at` upwards; returns the first loop that is not absorbed. A part of a
/// split that steps through the loop above has the other part beside it, so that the loop above is not
/// absorbable.
LoopId absorb_axis(const LoopTree& tree, LoopId at, WalkSite& site) {
  LoopId& top = tree[at].axis == Axis::Rows ? site.rows_top : site.trees_top;
  for (;;) {
    top = site.top = at;
    site.absorbed.push_back(at);
    const Loop& loop = tree[at];
    const LoopId above = loop.parent;
    const bool continues = above != kNoLoop && loop.source == above && absorbable(tree[above]);
    if (!continues) return above;
    at = above;
  }
}

WalkSite make_site(const LoopTree& tree, LoopId leaf) {
  WalkSite site;
  site.leaf = leaf;
  WalkerDesc& walker = site.walkers.front();
  walker.interleaved_trees = walker.interleaved_rows = 1;
  const Axis inner = tree[leaf].axis;
  walker.order = inner == Axis::Trees ? WalkOrder::RowsOuter : WalkOrder::TreesOuter;
  if (!absorbable(tree[leaf])) return site;
  const LoopId above = absorb_axis(tree, leaf, site);
  // The step of the loop above is 1: otherwise another loop would be between it and the leaf.
  if (above != kNoLoop && tree[above].axis != inner && absorbable(tree[above]))
    absorb_axis(tree, above, site);
  return site;
}

void collect(const LoopTree& tree, const std::vector<LoopId>& loops, std::vector<WalkSite>& sites) {
  for (const LoopId loop : loops) {
    if (tree[loop].children.empty())
      sites.push_back(make_site(tree, loop));
    else
      collect(tree, tree[loop].children, sites);
  }
}

/// The fewest lanes of a vector whose lanes are walks.
constexpr std::uint32_t kFewestLanes = 8;

/// Returns the number of iterations of a loop that are walked in lockstep, before it is rounded to a power of two.
std::uint32_t lockstep(const LoopTree& tree, LoopId loop) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(tree.iterations(loop), 1, kMaxInterleave));
}

Result<void> interleave(const Lowering& lowering, WalkSite& site) {
  const LoopTree& tree = lowering.loops;
  WalkerDesc& walker = site.walkers.front();
  std::size_t directive = 0;
  std::uint32_t trees = 1, rows = 1;
  for (const LoopId loop : site.absorbed) {
    if (!tree[loop].interleave || tree[loop].step != 1) continue;
    directive = std::max(directive, tree[loop].interleave->directive);
    (tree[loop].axis == Axis::Trees ? trees : rows) = lockstep(tree, loop);
  }
  // Trees of one row that leave some lanes of a vector empty take less time in one vector than in several groups.
  const bool fills_lanes = rows == 1 && trees > kFewestLanes / 2;
  walker.interleaved_trees =
      static_cast<std::uint8_t>(fills_lanes ? std::bit_ceil(trees) : std::bit_floor(trees));
  walker.interleaved_rows = static_cast<std::uint8_t>(std::bit_floor(rows));
  const unsigned walks = unsigned{walker.interleaved_trees} * walker.interleaved_rows;
  if (walks > kMaxInterleave)
    return lowering.refuse(
        directive, formatted("{} trees x {} rows in lockstep are more than {} walks: tile the loops smaller",
                             walker.interleaved_trees, walker.interleaved_rows, kMaxInterleave));
  return {};
}

/// Says why a walk instruction does not run a loop.
std::string not_innermost(const LoopTree& tree, LoopId loop) {
  const Loop& l = tree[loop];
  if (l.parallel) return "the loop is parallel, so its iterations are not walked together";
  if (l.dimension) return "the loop is mapped to a GPU launch, so its iterations are not walked together";
  if (l.specialize) return "each iteration of the loop has a walker of its own";
  if (l.cache) return "the loop caches its iterations, so they are not walked together";
  if (l.unroll) return "the loop is unrolled, so its iterations are not walked together";
  if (l.step != 1) return "an iteration of the loop is not one row or tree: take the loop inside it";
  return formatted("the loop is not innermost: loop '{}' stands between it and the walk",
                   tree[l.children.front()].name);
}

/// Checks that the trees of each iteration are known, and the iterations few enough to have their own
/// walkers.
Result<void> check_specialized(const Lowering& lowering, LoopId id) {
  const LoopTree& tree = lowering.loops;
  const Loop& loop = tree[id];
  const auto wrong = [&](const std::string& what) {
    return lowering.refuse(loop.specialize->directive, formatted("loop '{}' {}", loop.name, what));
  };
  if (loop.source != kNoLoop)
    return wrong(formatted(
        "steps through an iteration of loop '{}', so its own have no fixed trees: specialize that one",
        tree[loop.source].name));
  for (LoopId above = loop.parent; above != kNoLoop; above = tree[above].parent)
    if (tree[above].specialize)
      return wrong(formatted("is inside loop '{}', which is specialized already", tree[above].name));
  if (tree.iterations(id) > kMaxSpecialized)
    return wrong(formatted("has {} iterations, at most {} can have walkers of their own: tile it coarser",
                           tree.iterations(id), kMaxSpecialized));
  return {};
}

/// Checks that directives about walks are at loops that became part of a walk.
Result<void> check_walk_directives(const Lowering& lowering, const std::vector<bool>& absorbed, LoopId id) {
  const Loop& loop = lowering.loops[id];
  const auto wrong = [&](std::size_t directive) {
    return lowering.refuse(directive,
                           formatted("loop '{}': {}", loop.name, not_innermost(lowering.loops, id)));
  };
  if (loop.interleave && (!absorbed[id] || loop.step != 1)) return wrong(loop.interleave->directive);
  // The walks of an innermost loop can be unrolled whether or not the walk instruction runs the loop.
  const bool walks = absorbed[id] || loop.children.empty();
  if (loop.unroll_walk && !walks) return wrong(loop.unroll_walk->directive);
  if (loop.peel_walk && !walks) return wrong(loop.peel_walk->directive);
  if (loop.unroll && (loop.parallel_by() || loop.specialize || loop.cache))
    return lowering.refuse(
        loop.unroll->directive,
        formatted(
            "loop '{}' is parallel, mapped, specialized or cached: its iterations are not copies of code",
            loop.name));
  if (loop.specialize) FVM_TRY(check_specialized(lowering, id));
  for (const LoopId child : loop.children) FVM_TRY(check_walk_directives(lowering, absorbed, child));
  return {};
}

}  // namespace

Result<void> make_walks(Lowering& lowering) {
  collect(lowering.loops, lowering.loops.roots(), lowering.sites);
  std::vector<bool> absorbed(lowering.loops.size());
  for (WalkSite& site : lowering.sites) {
    for (const LoopId loop : site.absorbed) absorbed[loop] = true;
    for (LoopId at = site.leaf; at != kNoLoop; at = lowering.loops[at].parent)
      if (lowering.loops[at].specialize) site.specialized = at;
    FVM_TRY(interleave(lowering, site));
  }
  for (const LoopId root : lowering.loops.roots()) FVM_TRY(check_walk_directives(lowering, absorbed, root));
  return {};
}

}  // namespace forestvm::scheduler
