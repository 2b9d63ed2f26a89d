// SilvanForge's heuristic search for a GPU schedule. In: a batch size, a number of features and a way to measure. Out:
// a point of the template. Source: SilvanForge, section 8.2, algorithm 1. It measures 36 of the 5,184 points, and the
// best three again with shared reduction. Rows per thread, which the algorithm does not name, are 1: the smallest, as
// section 8.2 asks for parallelism first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <forestvm/result.hpp>

#include "scheduler/choose/gpu_template.hpp"

namespace forestvm::scheduler {

/// The result of the procedure TBConfigs (lines 1-11): values of two parameters to try.
struct ThreadBlocks {
  std::array<std::uint32_t, 2> rows_per_block;
  std::array<std::uint32_t, 2> tree_threads;

  bool operator==(const ThreadBlocks&) const = default;
};
ThreadBlocks thread_blocks(std::size_t batch, std::size_t features);

/// The points that are measured first (lines 14-20), in the order of the nested choices.
std::vector<GpuTemplatePoint> algorithm_1_points(std::size_t batch, std::size_t features);

/// The number of best points that are measured again with shared reduction (line 25).
inline constexpr std::size_t kTriedWithSharedReduction = 3;

/// Returns the seconds that a point takes; std::nullopt where it cannot be run.
using MeasurePoint = std::function<std::optional<double>(const GpuTemplatePoint&)>;

/// Returns the fastest point; of equally fast points, the one measured first. Returns an error if none can be run.
Result<GpuTemplatePoint> algorithm_1(std::size_t batch, std::size_t features, const MeasurePoint& measure);

}  // namespace forestvm::scheduler
