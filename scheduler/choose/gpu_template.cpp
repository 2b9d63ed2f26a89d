// See gpu_template.hpp.
#include "scheduler/choose/gpu_template.hpp"

#include <algorithm>
#include <array>

#include <forestvm/internal/formatted.hpp>

#include "scheduler/choose/schedule_space.hpp"

namespace forestvm::scheduler {
namespace {

/// Returns the number of trees that a thread walks between two reductions.
std::uint64_t run_length(const Model& model, const GpuTemplatePoint& point) {
  if (point.cache_trees) return point.interleave;
  const std::uint64_t trees = model.trees.size();
  return std::max<std::uint64_t>(1, (trees + point.tree_threads - 1) / point.tree_threads);
}

}  // namespace

GpuTemplatePoint gpu_template_point(std::size_t index) {
  namespace p = gpu_parameters;
  const std::vector<std::string_view> values = point_values(gpu_space(), index);
  const auto flag = [&](p::GpuParameter parameter) { return values[parameter] == "yes"; };
  GpuTemplatePoint point;
  point.rows_per_block = value_number(values[p::RowsPerBlock]);
  point.rows_per_thread = value_number(values[p::RowsPerThread]);
  point.tree_threads = value_number(values[p::TreeThreads]);
  point.cache_rows = flag(p::CacheRows);
  point.cache_trees = flag(p::CacheTrees);
  point.unroll_walks = flag(p::UnrollWalks);
  point.interleave = value_number(values[p::Interleave]);
  point.shared_reduce = flag(p::SharedReduce);
  point.layout = values[p::Layout];
  return point;
}

std::size_t gpu_point_number(const GpuTemplatePoint& point) {
  const auto flag = [](bool value) -> std::string_view { return value ? "yes" : "no"; };
  const std::string rows = std::to_string(point.rows_per_block),
                    of_thread = std::to_string(point.rows_per_thread),
                    threads = std::to_string(point.tree_threads),
                    interleave = std::to_string(point.interleave);
  const std::array<std::string_view, gpu_parameters::Count> values = {rows,
                                                                      of_thread,
                                                                      threads,
                                                                      flag(point.cache_rows),
                                                                      flag(point.cache_trees),
                                                                      flag(point.unroll_walks),
                                                                      interleave,
                                                                      flag(point.shared_reduce),
                                                                      point.layout};
  return point_of(gpu_space(), values);
}

std::string print(const GpuTemplatePoint& point) {
  const auto number = [](std::uint32_t value) { return std::to_string(value); };
  const auto flag = [](bool value) { return std::string(value ? "1" : "0"); };
  return formatted("rpb{}-rpt{}-tt{}-rows{}-trees{}-unroll{}-il{}-shared{}-{}", number(point.rows_per_block),
                   number(point.rows_per_thread), number(point.tree_threads), flag(point.cache_rows),
                   flag(point.cache_trees), flag(point.unroll_walks), number(point.interleave),
                   flag(point.shared_reduce), point.layout);
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
