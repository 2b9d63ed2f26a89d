// The state of one plan, which the passes hand on: the model, the schedule, and the forms between them and
// the program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <forestvm/compile.hpp>

#include "scheduler/loop_nest.hpp"
#include "scheduler/loop_tree.hpp"
#include "scheduler/tiled_forest.hpp"

namespace forestvm::scheduler {

/// An innermost loop, where trees are walked, and the walk instruction that it becomes. The instruction runs
/// ("absorbs") the innermost loops itself: loops over one axis, and around them loops over the other.
struct WalkSite {
  LoopId leaf = kNoLoop;       ///< the innermost loop
  LoopId top = kNoLoop;        ///< the outermost absorbed loop; kNoLoop: none, the walk stands inside `leaf`
  LoopId rows_top = kNoLoop;   ///< the outermost absorbed loop over rows
  LoopId trees_top = kNoLoop;  ///< the outermost absorbed loop over trees
  std::vector<LoopId> absorbed;
  /// The trees that the walk can reach: positions [tree_begin, tree_end). There are none in a part of a split that
  /// lies past the last tree.
  std::uint32_t tree_begin = 0;
  std::uint32_t tree_end = 0;
  LoopId specialized = kNoLoop;  ///< the loop by whose iterations the walker is chosen
  /// The walkers: one, or one for each iteration of `specialized`. Before the pass tile-forest there is one for all
  /// iterations; if there are no trees, it means nothing.
  std::vector<WalkerDesc> walkers{WalkerDesc{}};
};

/// The types of sums and scores.
struct Sums {
  AccumulatorKind kind = AccumulatorKind::F32;
  AccumulatorKind scores = AccumulatorKind::F32;  ///< type that transforms and outputs read: F32 or F64
  /// True if walks for outputs of single trees keep leaves, and others add them to sums.
  bool leaves_apart = false;
  int unit = 0;  ///< exponent of the unit of exact sums, 2^unit
  bool in_model_order = true;
};

/// The part of a schedule that is for calls of `least` to `most` rows on some CPU targets.
struct Plan {
  std::size_t first_directive = 0;
  std::size_t end_directive = 0;
  std::uint32_t least = 0;
  std::uint32_t most = UINT32_MAX;
  TargetSet targets = TargetSet::Any;
};

/// One plan between schedule and program.
struct Lowering {
  const Model& model;  ///< the model, which has the normal form after the pass normalize
  const Schedule& schedule;
  const CompileOptions& options;
  Plan plan;

  LoopTree loops;
  std::vector<WalkSite> sites;
  TiledForest forest;
  LoopNest nest;
  Sums sums;
  bool numbered = false;  ///< True if leaves hold indices of vectors or functions.
  std::vector<std::string> warnings;

  Lowering(const Model& m, const Schedule& s, const CompileOptions& o, const Plan& p, CutTrees& cut)
      : model(m),
        schedule(s),
        options(o),
        plan(p),
        loops(static_cast<std::uint32_t>(m.trees.size())),
        forest(m, cut) {}

  /// Returns true if the iterations of a loop add to the same sums in parallel. On the host a loop of one
  /// iteration does not; a mapped loop of one iteration does, because the launch still has its dimension.
  bool is_reduction(LoopId loop) const {
    const Loop& l = loops[loop];
    return l.axis == Axis::Trees && (l.dimension || (l.parallel && loops.iterations(loop) > 1));
  }

  /// Returns true if some loop is mapped to a GPU launch.
  bool is_mapped() const {
    for (LoopId id = 0; id < loops.size(); ++id)
      if (loops[id].dimension) return true;
    return false;
  }

  /// Returns true if some trees of the plan are walked by rank codes, so that its rows are encoded first. Trees that
  /// are a single leaf test nothing and need no codes.
  bool encodes() const;

  /// Returns an error at a directive's location in the schedule.
  Error refuse(std::size_t directive, const std::string& what) const {
    return refused(location_of(schedule, directive) + ": " + print(schedule.directives[directive]), what);
  }
};

// The passes over one plan, in the order of the table in pipeline.cpp; each in passes/<name>.cpp.

/// Directives -> loop tree.
Result<void> apply_schedule(Lowering& lowering);
/// Model -> the order in which the program goes through the trees.
Result<void> order_trees(Lowering& lowering);
/// Checks loops that are mapped to a GPU launch, and directives that only GPUs or only hosts have.
Result<void> check_mapping(Lowering& lowering);
/// Loop tree -> walk sites: which loops a walk instruction absorbs, how many walks go in lockstep.
Result<void> make_walks(Lowering& lowering);
/// Model -> tiled forest: layouts, padding, groups, and the end of each walk.
Result<void> tile_forest(Lowering& lowering);
/// Loop tree -> loop nest, with getTree, walk and reduce.
Result<void> make_loops(Lowering& lowering);
/// Contract, accumulate directive and order of additions -> the type of the sums.
Result<void> choose_sums(Lowering& lowering);
/// Gives parallel loops over trees private accumulators and reductions, and initialises and writes results.
Result<void> legalize_reductions(Lowering& lowering);

}  // namespace forestvm::scheduler
