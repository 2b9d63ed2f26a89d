// See algorithm_1.hpp. Line numbers in comments are the numbers of the paper's listing.
#include "scheduler/choose/algorithm_1.hpp"

#include <algorithm>

namespace forestvm::scheduler {
namespace {

constexpr std::size_t kManyRows = 2048, kManyFeatures = 128;  // line 2

struct Measured {
  double seconds;
  GpuTemplatePoint point;
};

/// Measures a point and inserts it, so that the fastest comes first. Of equally fast points, the one measured first
/// comes first.
void insert(std::vector<Measured>& all, const GpuTemplatePoint& point, const MeasurePoint& measure) {
  const std::optional<double> seconds = measure(point);
  if (!seconds) return;
  const auto position =
      std::upper_bound(all.begin(), all.end(), *seconds,
                       [](double value, const Measured& other) { return value < other.seconds; });
  all.insert(position, {*seconds, point});
}

}  // namespace

ThreadBlocks thread_blocks(std::size_t batch, std::size_t features) {
  if (batch <= kManyRows || features > kManyFeatures) return {{8, 32}, {20, 50}};
  return {{32, 64}, {2, 10}};
}

std::vector<GpuTemplatePoint> algorithm_1_points(std::size_t batch, std::size_t features) {
  const ThreadBlocks blocks = thread_blocks(batch, features);
  std::vector<GpuTemplatePoint> points;
  GpuTemplatePoint point;
  point.cache_rows = true;
  for (const std::uint32_t rows : blocks.rows_per_block)
    for (const std::uint32_t threads : blocks.tree_threads)
      for (const std::uint32_t interleave : {1u, 2u, 4u})
        for (const char* layout : {"array", "sparse", "reorg"}) {
          point.rows_per_block = rows;
          point.tree_threads = threads;
          point.interleave = interleave;
          point.unroll_walks = interleave != 1;  // line 17
          point.layout = layout;
          points.push_back(point);
        }
  return points;
}

Result<GpuTemplatePoint> algorithm_1(std::size_t batch, std::size_t features, const MeasurePoint& measure) {
  std::vector<Measured> all;
  for (const GpuTemplatePoint& point : algorithm_1_points(batch, features)) insert(all, point, measure);
  std::vector<Measured> best = all;
  if (best.size() > kTriedWithSharedReduction) best.resize(kTriedWithSharedReduction, all.front());
  for (Measured& tried : best) {
    tried.point.shared_reduce = true;
    insert(all, tried.point, measure);
  }
  if (all.empty()) return refused("algorithm 1", "none of its GPU schedules can be run");
  return all.front().point;
}

}  // namespace forestvm::scheduler
