// The template GPU schedule and its nine parameters: the space in which GPU schedules are searched. Source:
// SilvanForge, section 8.1 and table 5. The paper names the parameters, not the directives; forestvm's directives are:
//
//   rows per thread block     tile(batch, b0, b, rows_per_block); gpuDimension(b0, grid.x)
//   rows per thread           tile(b, b1, b2, rows_per_thread); gpuDimension(b1, block.x)
//   number of tree threads    tile(tree, t0, t, tree_threads x run); tile(t, t1, t2, run);
//                             gpuDimension(t1, block.y)
//   cache rows                cache(b0)
//   cache trees               cache(t0): the trees that the block's threads walk between two reductions
//   unroll walks              unrollWalk on the innermost loop: all trees are padded to the deepest
//   interleave factor         tile(t2, t3, t4, interleave); interleave(t4): trees in lockstep in a thread
//   shared memory reduction   sharedReduce(t1)
//   representation            layout(t0, array | sparse | reorg)
//
// A thread walks `run` trees in a row. Without cached trees that is its whole share, trees / tree_threads
// rounded up, so that t0 has a single iteration and there is a single reduction. With cached trees it is the
// interleave factor: t0 brings tree_threads x interleave trees at a time to shared memory, which seldom holds
// a forest. Threads for which no tree is left are not launched.
//
//   map b0 in rows step rows_per_block on grid.x:
//     map b1 in b0 step rows_per_thread on block.x:
//       for t0 in trees step tree_threads x run:
//         map t1 in t0 step run on block.y:
//           for t2 in t1: for b2 in b1: walk          # interleaved: for b2: for t3: for t4: walk
//
// A point that cannot be run (blocks of more than 1,024 threads, a layout that would be too large) still
// gives its schedule, which the compiler refuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <forestvm/model.hpp>
#include <forestvm/schedule.hpp>

namespace forestvm::scheduler {

/// A point of the space: a value of each parameter.
struct GpuTemplatePoint {
  std::uint32_t rows_per_block = 8;
  std::uint32_t rows_per_thread = 1;
  std::uint32_t tree_threads = 2;
  bool cache_rows = false;
  bool cache_trees = false;
  bool unroll_walks = false;
  std::uint32_t interleave = 1;
  bool shared_reduce = false;
  std::string_view layout = "array";  ///< word of the layout: array, sparse or reorg

  bool operator==(const GpuTemplatePoint&) const = default;
};

/// The number of combinations in table 5.
inline constexpr std::size_t kGpuTemplatePoints = 5184;

/// Returns the point with this number, which is below kGpuTemplatePoints. The parameters' values are the rows of
/// spaces.def.
GpuTemplatePoint gpu_template_point(std::size_t index);

/// Returns the number of a point in the space of GPU schedules.
std::size_t gpu_point_number(const GpuTemplatePoint& point);

/// Returns a point's name, with all nine parameters: "rpb64-rpt1-tt20-rows1-trees0-unroll1-il4-shared0-array".
std::string print(const GpuTemplatePoint& point);

/// Returns the schedule of a point, for this model's number of trees. The schedules of different points have
/// different texts.
Schedule gpu_template_schedule(const Model& model, const GpuTemplatePoint& point);

}  // namespace forestvm::scheduler
