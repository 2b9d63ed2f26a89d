// The two schedules of SilvanForge's figure 1. Both split the trees by depth and unroll each part's walks to
// its own depth, so that little is padded and no leaf is checked. The trees are ordered by depth first: parts
// are then neighbours.
//
//   1b: for depth1 in trees[0:2]:                  1c: map batch in rows on grid.x:
//         for batch in rows: walk, 1 step                 for t0_depth1 in trees[0:2] step 64:
//       for depth2 in trees[2:]:                           map t1_depth1 on block.x: walk, 1 step
//         for batch in rows: walk, 2 steps                for t0_depth2 in trees[2:] step 64: …
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "scheduler/choose/model_schedules.hpp"
#include "scheduler/tiled_forest.hpp"

namespace forestvm::scheduler {
namespace {

/// Neighbouring trees, in ascending order of depth, that are unrolled to the deepest of them.
struct DepthGroup {
  std::uint32_t depth = 0;
  std::size_t trees = 0;
};

/// The most groups. Each group has its own code for its walks, and models of many depths have few trees of most depths.
constexpr std::size_t kMaxGroups = 8;
/// Threads of a block in figure 1c: two warps of trees.
constexpr std::uint32_t kTreeThreads = 64;

/// Groups trees by depth; while there are more than kMaxGroups, joins the two that cost the fewest padded
/// steps.
std::vector<DepthGroup> depth_groups(const Model& model) {
  std::map<std::uint32_t, std::size_t> counts;
  for (const Tree& tree : model.trees) ++counts[shape_of(tree).depth];
  std::vector<DepthGroup> groups;
  groups.reserve(counts.size());
  for (const auto& [depth, trees] : counts) groups.push_back({depth, trees});
  const auto padding = [](const DepthGroup& group, const DepthGroup& deeper) {
    return group.trees * (deeper.depth - group.depth);
  };
  while (groups.size() > kMaxGroups) {
    std::size_t cheapest = 0;
    for (std::size_t i = 1; i + 1 < groups.size(); ++i)
      if (padding(groups[i], groups[i + 1]) < padding(groups[cheapest], groups[cheapest + 1])) cheapest = i;
    groups[cheapest + 1].trees += groups[cheapest].trees;
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(cheapest));
  }
  return groups;
}

std::string name(const char* word, const DepthGroup& group) { return word + std::to_string(group.depth); }

/// Splits loop `tree` by depth. Returns the names of its parts; `tree` alone if all depths are equal.
std::vector<std::string> split_by_depth(const Model& model, Schedule& schedule) {
  const std::vector<DepthGroup> groups = depth_groups(model);
  std::vector<std::string> parts;
  std::string rest = "tree";
  for (std::size_t i = 0; i + 1 < groups.size(); ++i) {
    const bool last = i + 2 == groups.size();
    parts.push_back(name("depth", groups[i]));
    const std::string deeper = last ? name("depth", groups[i + 1]) : name("deeper", groups[i]);
    schedule.split(rest, parts.back(), deeper, groups[i].trees);
    rest = deeper;
  }
  parts.push_back(rest);
  return parts;
}

}  // namespace

Schedule paper_figure_1b(const Model& model, Contract) {
  Schedule schedule;
  schedule.orderTrees("depth").reorder("tree", "batch");
  for (const std::string& part : split_by_depth(model, schedule)) schedule.unrollWalk(part + ".batch");
  return schedule;
}

/// Makes the schedule of figure 1c. The paper tiles the trees first and splits the loop over tiles; the parts are
/// then whole tiles. Here the trees are split first, so that no tile holds trees of two depths.
Schedule paper_figure_1c(const Model& model, Contract) {
  Schedule schedule;
  schedule.orderTrees("depth").gpuDimension("batch", "grid.x");
  for (const std::string& part : split_by_depth(model, schedule))
    schedule.tile(part, "t0_" + part, "t1_" + part, kTreeThreads)
        .gpuDimension("t1_" + part, "block.x")
        .unrollWalk("t1_" + part);
  return schedule;
}

}  // namespace forestvm::scheduler
