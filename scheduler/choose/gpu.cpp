// The automatic schedule for GPUs: blocks of rows, one thread for each row. A thread walks the trees in the model's
// order, four at a time. The rows of a block are in shared memory if they fit: as rank codes where features are
// tested often enough to pay for encoding, otherwise as values. Calls of fewer rows are cut into smaller blocks, so
// that more of the GPU works. Trees are not spread over threads, which would change the order of sums. The choices
// follow from calculated costs (kernels/account/accounting.hpp), not from measurements.
#include <forestvm/statistics.hpp>

#include "scheduler/choose/model_schedules.hpp"
#include "scheduler/rank_table.hpp"

namespace forestvm::scheduler {
namespace {

/// Largest call that is cut into smaller blocks: 132 SMs with a block of kMaxRows each take twice as many rows.
constexpr std::uint32_t kFewRows = 16384;
constexpr std::uint32_t kRowsOfFew = 32;

/// Bytes of shared memory for rows, at 4 bytes a value or code. On every GPU a block has that much, and room for
/// sums beside it.
constexpr std::size_t kStagedBytes = 40u << 10;
constexpr std::uint32_t kMaxRows = 256, kMinRows = 32;
constexpr std::uint32_t kRowsNotStaged = 128;

constexpr std::uint32_t kLockstep = 4;

/// Codes pay from this many steps of a row through all trees for each feature. Visiting an 8-byte node
/// takes 3.7 cycles of shared memory and L1, a 4-byte node 2.2; searching a feature's 8 levels of thresholds
/// takes about 55.
constexpr double kStepsPerCodedFeature = 64;

constexpr std::uint32_t kMaxArrayDepth = 12;
constexpr double kMaxArrayPadding = 2;  ///< largest ratio of slots to nodes for the array layout
/// Largest ratio of the deepest tree's depth to the mean depth with which walks are unrolled.
constexpr double kMaxWalkPadding = 1.25;

/// Returns how many rows of a block fit shared memory with `values` values or codes each; 0 if too few do.
std::uint32_t staged_rows(std::size_t values) {
  for (std::uint32_t rows = kMaxRows; rows >= kMinRows; rows /= 2)
    if (rows * values * sizeof(float) <= kStagedBytes) return rows;
  return 0;
}

bool pays_for_codes(const Model& model, const ForestStatistics& forest) {
  return static_cast<double>(model.trees.size()) * forest.mean_depth >=
         kStepsPerCodedFeature * forest.features_used;
}

/// Returns true if the trees fill level order well enough. That order takes the fewest instructions a step.
bool suits_array(const Model& model, const ForestStatistics& forest) {
  if (forest.max_depth > kMaxArrayDepth) return false;
  const std::uint64_t slots = model.trees.size() * ((std::uint64_t{2} << forest.max_depth) - 1);
  return static_cast<double>(slots) <= kMaxArrayPadding * static_cast<double>(forest.nodes);
}

}  // namespace

Schedule gpu(const Model& model) {
  const ForestStatistics forest = statistics(model);
  const bool array = suits_array(model, forest);
  const std::uint32_t staged_codes = staged_rows(most_columns(model, forest));
  const bool coded =
      forest.category_splits != 0 || (array && staged_codes != 0 && pays_for_codes(model, forest));
  const std::uint32_t staged = coded ? staged_codes : staged_rows(num_columns(model));
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
    if (array && forest.max_depth <= kMaxWalkPadding * forest.mean_depth) schedule.unrollWalk("t1");
  };
  Schedule schedule;
  blocks(schedule.plan(kFewRows), kRowsOfFew);
  blocks(schedule.plan("BATCH"), staged == 0 ? kRowsNotStaged : staged);
  return schedule;
}

}  // namespace forestvm::scheduler
