// See host_heuristic.hpp.
#include "scheduler/choose/host_heuristic.hpp"

#include <array>
#include <string>
#include <string_view>

#include "scheduler/choose/schedule_space.hpp"

namespace forestvm::scheduler {
namespace {

/// Calls of up to this many rows do not fill the vectors of a walk over rows; larger calls have no use for lanes of
/// trees.
constexpr std::size_t kFewBatchRows = 64;
/// The fewest rows of a call for which the points of add_row_lanes are measured: with fewer, blocks would be nearly
/// empty.
constexpr std::size_t kSmallestBlocks = 8;

/// Adds the points that walk one row at a time, with trees in lockstep: values and codes, in long and short
/// lockstep.
void add_tree_lanes(std::vector<HostTemplatePoint>& points) {
  for (const std::string_view encode : {"none", "u8"})
    for (const std::string_view layout : {"sparse", "array"})
      for (const std::uint32_t interleave : {16u, 128u})
        points.push_back({"none", 64, "trees", interleave, layout, "none", encode, "checked"});
}

/// Adds the points that walk blocks of rows, tree by tree: by tables, and by gathers over values and codes.
void add_row_lanes(std::vector<HostTemplatePoint>& points, std::uint32_t block) {
  points.push_back({"rows", block, "rows", 1, "tables", "none", "u8", "checked"});
  points.push_back({"rows", block, "rows", 1, "treeTables", "none", "u8", "checked"});
  for (const std::string_view encode : {"none", "u8"})
    for (const std::uint32_t interleave : {32u, 128u})
      points.push_back({"rows", block, "rows", interleave, "sparse", "none", encode, "checked"});
}

/// Adds the points that walk blocks of trees in parallel, which give threads work where rows are few.
void add_parallel_trees(std::vector<HostTemplatePoint>& points) {
  for (const std::string_view encode : {"none", "u8"})
    points.push_back({"trees", 256, "trees", 128, "sparse", "none", encode, "checked"});
  points.push_back({"both", 64, "rows", 1, "tables", "none", "u8", "checked"});
  points.push_back({"both", 64, "rows", 64, "sparse", "none", "none", "checked"});
}

}  // namespace

std::vector<HostTemplatePoint> host_heuristic_points(std::size_t batch, std::size_t threads) {
  std::vector<HostTemplatePoint> points;
  if (batch <= kFewBatchRows) add_tree_lanes(points);
  if (batch >= kSmallestBlocks)
    for (const std::uint32_t block : {64u, 256u, 512u})
      if (block <= batch || block == 64) add_row_lanes(points, block);
  if (threads > 1 && batch < 64 * threads) add_parallel_trees(points);
  return points;
}

std::vector<HostTemplatePoint> host_variants(const HostTemplatePoint& point) {
  std::vector<HostTemplatePoint> points;
  for (const std::string_view tiling : {"none", "probability"})
    for (const std::string_view walker : {"checked", "unrolled"}) {
      HostTemplatePoint variant = point;
      variant.tiling = tiling;
      variant.walker = walker;
      if (tiling != point.tiling || walker != point.walker) points.push_back(variant);
    }
  return points;
}

std::size_t host_point_number(const HostTemplatePoint& point) {
  const std::string block = std::to_string(point.block), interleave = std::to_string(point.interleave);
  const std::array<std::string_view, host_parameters::Count> values = {
      point.parallel, block, point.lanes, interleave, point.layout, point.tiling, point.encode, point.walker};
  return point_of(host_space(), values);
}

}  // namespace forestvm::scheduler
