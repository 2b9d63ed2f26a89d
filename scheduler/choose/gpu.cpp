// The schedule of programs for GPUs, for those who do not want to choose: blocks of rows, a thread a row,
// which walks the trees in the model's order, four at a time, its values in shared memory where the block's
// fit; or its rank codes, if it is tested so often that to find them pays. Calls of fewer rows are cut into
// smaller blocks, so that more of the GPU works. Trees are not spread over threads: that would change the
// order of sums. Chosen on paper (kernels/account/accounting.hpp), not by measuring.
#include <forestvm/statistics.hpp>

#include "scheduler/choose/model_schedules.hpp"
#include "scheduler/rank_table.hpp"

namespace forestvm::scheduler {
namespace {

constexpr std::uint32_t kFewRows = 16384;  ///< 132 SMs with a block of kMostRows each take twice as many
constexpr std::uint32_t kRowsOfFew = 32;

/// Of rows in shared memory, 4 bytes a value or code: that much of it a block has on every GPU, with room for
/// sums.
constexpr std::size_t kStagedBytes = 40u << 10;
constexpr std::uint32_t kMostRows = 256, kLeastRows = 32;
constexpr std::uint32_t kRowsNotStaged = 128;

constexpr std::uint32_t kLockstep = 4;

/// Hops of a row through all trees, for each feature, from which on codes pay. A visit of 8-byte nodes takes
/// 3.7 turns of shared memory and L1, one of 4-byte nodes 2.2; to search a feature's 8 levels of thresholds
/// takes about 55.
constexpr double kHopsPerCodedFeature = 64;

constexpr std::uint32_t kMostArrayDepth = 12;
constexpr double kMostArrayPadding = 2;    ///< slots / nodes
constexpr double kMostWalkPadding = 1.25;  ///< deepest tree / mean depth

/// Rows of a block of which so many values or codes fit; 0 if too few do.
std::uint32_t staged_rows(std::size_t values) {
  for (std::uint32_t rows = kMostRows; rows >= kLeastRows; rows /= 2)
    if (rows * values * sizeof(float) <= kStagedBytes) return rows;
  return 0;
}

bool pays_for_codes(const Model& model, const ForestStatistics& forest) {
  return static_cast<double>(model.trees.size()) * forest.mean_depth >=
         kHopsPerCodedFeature * forest.features_used;
}

/// Level order takes the fewest instructions a hop, if the trees fill it.
bool suits_array(const Model& model, const ForestStatistics& forest) {
  if (forest.max_depth > kMostArrayDepth) return false;
  const std::uint64_t slots = model.trees.size() * ((std::uint64_t{2} << forest.max_depth) - 1);
  return static_cast<double>(slots) <= kMostArrayPadding * static_cast<double>(forest.nodes);
}

}  // namespace

Schedule gpu(const Model& model) {
  const ForestStatistics forest = statistics(model);
  const bool array = suits_array(model, forest);
  const std::uint32_t staged_codes = staged_rows(most_columns(model, forest));
  const bool coded =
      forest.category_splits != 0 || (array && staged_codes != 0 && pays_for_codes(model, forest));
  const std::uint32_t staged = coded ? staged_codes : staged_rows(model.num_features);
  const auto blocks = [&](Schedule& schedule, std::uint32_t rows) {
    schedule.tile("batch", "b0", "b1", rows)
        .tile("tree", "t0", "t1", kLockstep)
        .reorder("b0", "b1", "t0", "t1")
        .gpuDimension("b0", "grid.x")
        .gpuDimension("b1", "block.x")
        .layout("t0", array ? "array" : "sparse")
        .interleave("t1");
    if (coded) schedule.encode("u8");
    if (staged != 0) schedule.cache("b0");
    if (array && forest.max_depth <= kMostWalkPadding * forest.mean_depth) schedule.unrollWalk("t1");
  };
  Schedule schedule;
  blocks(schedule.plan(kFewRows), kRowsOfFew);
  blocks(schedule.plan("BATCH"), staged == 0 ? kRowsNotStaged : staged);
  return schedule;
}

}  // namespace forestvm::scheduler
