// The schedule for those who do not want to choose: blocks of 64 rows in parallel, tree by tree, eight rows
// in lockstep; whole padded walks where the trees are of much the same, moderate depth (fewer mispredicted
// branches buy more than the padding costs). The layout is left to the compiler: array where it wastes
// little, else sparse.
#include <forestvm/compile.hpp>

namespace forestvm {
namespace {

constexpr std::uint32_t kDeepestUnrolled = 10;
constexpr double kMostPadding = 1.25;  ///< deepest tree / mean depth

bool suits_unrolling(const Model& model) {
  const ForestStatistics forest = statistics(model);
  return forest.max_depth >= 1 && forest.max_depth <= kDeepestUnrolled &&
         forest.max_depth <= kMostPadding * forest.mean_depth;
}

}  // namespace

Schedule automatic_schedule(const Model& model) {
  Schedule schedule;
  schedule.tile("batch", "b0", "b1", 64).reorder("b0", "tree", "b1").parallel("b0").interleave("b1");
  if (suits_unrolling(model)) schedule.unrollWalk("b1");
  return schedule;
}

}  // namespace forestvm
