// See gpu_template.hpp.
#include "scheduler/choose/gpu_template.hpp"

#include <algorithm>
#include <array>

namespace forestvm::scheduler {
namespace {

// Table 5.
constexpr std::array<std::uint32_t, 3> kRowsPerBlock = {8, 32, 64};
constexpr std::array<std::uint32_t, 3> kRowsPerThread = {1, 2, 4};
constexpr std::array<std::uint32_t, 4> kTreeThreads = {2, 10, 20, 50};
constexpr std::array<bool, 2> kFlags = {true, false};
constexpr std::array<std::uint32_t, 3> kInterleave = {1, 2, 4};
constexpr std::array<std::string_view, 3> kLayouts = {"array", "sparse", "reorg"};

static_assert(kGpuTemplatePoints == kRowsPerBlock.size() * kRowsPerThread.size() * kTreeThreads.size() *
                                        kFlags.size() * kFlags.size() * kFlags.size() * kInterleave.size() *
                                        kFlags.size() * kLayouts.size());

/// Takes the fastest-changing digit of `index`, which chooses one of the values.
template <class Value, std::size_t Count>
Value take(std::size_t& index, const std::array<Value, Count>& values) {
  const Value value = values[index % Count];
  index /= Count;
  return value;
}

/// The number of trees that a thread walks between two reductions.
std::uint64_t run_length(const Model& model, const GpuTemplatePoint& point) {
  if (point.cache_trees) return point.interleave;
  const std::uint64_t trees = model.trees.size();
  return std::max<std::uint64_t>(1, (trees + point.tree_threads - 1) / point.tree_threads);
}

}  // namespace

GpuTemplatePoint gpu_template_point(std::size_t index) {
  FVM_CHECK(index < kGpuTemplatePoints);
  GpuTemplatePoint point;
  point.layout = take(index, kLayouts);
  point.shared_reduce = take(index, kFlags);
  point.interleave = take(index, kInterleave);
  point.unroll_walks = take(index, kFlags);
  point.cache_trees = take(index, kFlags);
  point.cache_rows = take(index, kFlags);
  point.tree_threads = take(index, kTreeThreads);
  point.rows_per_thread = take(index, kRowsPerThread);
  point.rows_per_block = take(index, kRowsPerBlock);
  return point;
}

std::string print(const GpuTemplatePoint& point) {
  const auto number = [](std::uint32_t value) { return std::to_string(value); };
  const auto flag = [](bool value) { return std::string(value ? "1" : "0"); };
  return "rpb" + number(point.rows_per_block) + "-rpt" + number(point.rows_per_thread) + "-tt" +
         number(point.tree_threads) + "-rows" + flag(point.cache_rows) + "-trees" + flag(point.cache_trees) +
         "-unroll" + flag(point.unroll_walks) + "-il" + number(point.interleave) + "-shared" +
         flag(point.shared_reduce) + "-" + std::string(point.layout);
}

Schedule gpu_template_schedule(const Model& model, const GpuTemplatePoint& point) {
  const std::uint64_t run = run_length(model, point);
  const bool lockstep = point.interleave > 1;
  const char* const innermost = lockstep ? "t4" : "b2";
  Schedule schedule;
  schedule.tile("batch", "b0", "b", point.rows_per_block).tile("b", "b1", "b2", point.rows_per_thread);
  schedule.tile("tree", "t0", "t", point.tree_threads * run).tile("t", "t1", "t2", run);
  if (lockstep)
    schedule.tile("t2", "t3", "t4", point.interleave).reorder("b0", "b1", "t0", "t1", "b2", "t3", "t4");
  else
    schedule.reorder("b0", "b1", "t0", "t1", "t2", "b2");
  schedule.gpuDimension("b0", "grid.x").gpuDimension("b1", "block.x").gpuDimension("t1", "block.y");
  if (point.cache_rows) schedule.cache("b0");
  if (point.cache_trees) schedule.cache("t0");
  if (point.unroll_walks) schedule.unrollWalk(innermost);
  if (lockstep) schedule.interleave("t4");
  if (point.shared_reduce) schedule.sharedReduce("t1");
  return schedule.layout("t0", point.layout);
}

}  // namespace forestvm::scheduler
