// RAPIDS FIL's schedule. A fixed number of threads of a block share the trees, and the block takes four rows at a time
// from shared memory; nodes lie in the reorg layout, and the threads' sums are reduced in shared memory. Source:
// SilvanForge, sections 1 and 6.
#include <algorithm>

#include "scheduler/choose/model_schedules.hpp"

namespace forestvm::scheduler {
namespace {

constexpr std::size_t kFilTreeThreads = 256, kRows = 4;

}  // namespace

Schedule rapids_fil(const Model& model, Contract) {
  const std::size_t run =
      std::max<std::size_t>(1, (model.trees.size() + kFilTreeThreads - 1) / kFilTreeThreads);
  return Schedule()
      .tile("batch", "b0", "b1", kRows)
      .tile("tree", "t0", "t1", run)
      .reorder("b0", "t0", "t1", "b1")
      .gpuDimension("b0", "grid.x")
      .gpuDimension("t0", "block.x")
      .cache("b0")
      .interleave("b1")
      .sharedReduce("t0")
      .layout("t0", "reorg");
}

}  // namespace forestvm::scheduler
