// See host_template.hpp.
#include "scheduler/choose/host_template.hpp"

#include <string>
#include <utility>

#include "scheduler/choose/schedule_space.hpp"

namespace forestvm::scheduler {
namespace {

/// The trees of a block if both blocks of rows and blocks of trees run in parallel.
constexpr std::uint32_t kTreesOfBoth = 64;

/// Makes the loops of a point. Returns the name of the innermost loop, and the prefix for the names of its pieces.
std::pair<std::string, std::string> make_nest(Schedule& schedule, const HostTemplatePoint& point) {
  const bool rows = point.lanes == "rows";
  if (point.parallel == "trees") {
    schedule.tile("tree", "t0", "t1", point.block);
    if (rows) return schedule.reorder("t0", "t1", "batch"), std::pair("batch", "b");
    return schedule.reorder("t0", "batch", "t1"), std::pair("t1", "t");
  }
  if (point.parallel == "none" && !rows) return {"tree", "t"};
  schedule.tile("batch", "b0", "b1", point.block);
  if (point.parallel == "both") {
    schedule.tile("tree", "t0", "t1", kTreesOfBoth);
    if (rows) return schedule.reorder("b0", "t0", "t1", "b1"), std::pair("b1", "b");
    return schedule.reorder("b0", "t0", "b1", "t1"), std::pair("t1", "t");
  }
  if (rows) return schedule.reorder("b0", "tree", "b1"), std::pair("b1", "b");
  return {"tree", "t"};
}

}  // namespace

HostTemplatePoint host_template_point(std::size_t index) {
  namespace p = host_parameters;
  const std::vector<std::string_view> values = point_values(host_space(), index);
  return {values[p::Parallel], value_number(values[p::Block]),
          values[p::Lanes],    value_number(values[p::Interleave]),
          values[p::Layout],   values[p::Tiling],
          values[p::Encode],   values[p::Walker]};
}

Schedule host_template_schedule(const HostTemplatePoint& point) {
  Schedule schedule;
  auto [innermost, prefix] = make_nest(schedule, point);
  const bool tables = point.layout == "tables" || point.layout == "treeTables" || point.layout == "topTables";
  const bool lockstep = !tables && point.interleave > 1;
  if (lockstep) {
    schedule.tile(innermost, prefix + "2", prefix + "3", point.interleave);
    innermost = prefix + "3";
  }
  if (point.parallel == "rows" || point.parallel == "both") schedule.parallel("b0");
  if (point.parallel == "trees" || point.parallel == "both") schedule.parallel("t0");
  if (point.tiling == "probability") schedule.tileTree("tree", 1, "probability");
  if (point.tiling == "uniform4") schedule.tileTree("tree", 4, "uniform");
  if (point.tiling == "uniform8") schedule.tileTree("tree", 8, "uniform");
  schedule.layout("tree", point.layout).encode(point.encode);
  if (lockstep) schedule.interleave(innermost);
  if (!tables && point.walker == "unrolled") schedule.unrollWalk(innermost);
  return schedule;
}

}  // namespace forestvm::scheduler
