// The automatic schedule for the host: a plan for calls of a few rows, whose lanes are trees,
// and plans for more, in blocks of rows in parallel, tree by tree. Trees of up to 256 leaves are walked by
// rank codes, blocks of rows through tables (small trees, in calls of fewer rows than a block has, through
// tree tables), unless too few trees share the cost of encoding, so that gathers of the values are faster.
// Larger trees are walked with rows in the lanes of gathers. Categorical splits always use rank codes.
#include <algorithm>
#include <vector>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/tree_tables.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/statistics.hpp>

#include "scheduler/rank_table.hpp"

namespace forestvm {
namespace {

/// A block of rows costs as much as this number of rows walked one by one.
constexpr std::uint32_t kFewRows = 16;
/// Replaces kFewRows for oblivious and small trees, whose blocks cost less.
constexpr std::uint32_t kFewRowsOfFast = 6;
/// Largest ratio of the deepest tree's depth to the mean depth with which walks are unrolled.
constexpr double kMaxPadding = 1.25;
/// Trees with at most this many leaves on average are walked faster through tree tables than through a table
/// for each level, in calls of up to kTreeTableRows rows. (More tests mean more columns to choose from in
/// each hop, which only AVX-512 does at a constant cost: with 47 leaves, AVX-512 is 1.13 times as fast, AVX2
/// 0.67 times.)
constexpr double kMaxMeanLeavesOfSmall = 24;
constexpr std::uint32_t kTreeTableRows = kCodeRows;
constexpr std::uint32_t kLanes = 128;  ///< number of walks in lockstep: eight vectors of the widest target

/// The number of leaves of the largest tree.
std::uint64_t most_leaves(const Model& model) {
  std::uint64_t most = 0;
  for (const Tree& tree : model.trees)
    most = std::max<std::uint64_t>(most, static_cast<std::uint64_t>(std::count_if(
                                             tree.nodes.begin(), tree.nodes.end(),
                                             [](const Node& n) { return n.kind == NodeKind::Leaf; })));
  return most;
}

/// The limit of values to encode for each hop. Encoding a value costs less than half a hop by gathers with
/// AVX-512, and one and a half with AVX2, where it is a loss near the limit (the epsilon model: 1.4 times as
/// fast with AVX-512, 0.75 times with AVX2).
constexpr double kMaxValuesPerHop = 2.5;

bool suits_codes(const Model& model, const ForestStatistics& forest, bool fits_tables) {
  if (forest.category_splits != 0) return true;
  const double hops = forest.mean_depth * static_cast<double>(model.trees.size());
  return fits_tables && forest.features_used <= kMaxValuesPerHop * hops;
}

bool same_test(const Node& a, const Node& b) {
  return a.kind == b.kind && a.feature == b.feature && a.threshold == b.threshold && a.payload == b.payload &&
         a.missing_left == b.missing_left && a.missing == b.missing;
}

/// Returns true if all nodes of a level make the same test, and all leaves are below the last level.
bool is_oblivious(const Tree& tree) {
  std::vector<std::size_t> level{0}, below;
  while (tree.nodes[level.front()].kind != NodeKind::Leaf) {
    below.clear();
    for (const std::size_t at : level) {
      const Node& node = tree.nodes[at];
      if (!same_test(node, tree.nodes[level.front()])) return false;
      below.push_back(static_cast<std::size_t>(node.left));
      below.push_back(static_cast<std::size_t>(node.right));
    }
    level.swap(below);
  }
  return std::all_of(level.begin(), level.end(),
                     [&](std::size_t at) { return tree.nodes[at].kind == NodeKind::Leaf; });
}

constexpr std::uint64_t kMaxRegisterColumns = 256;  ///< most columns whose codes are looked up in registers

/// Returns true if trees are on average nearly as deep as the deepest, so that walks can do without leaf checks.
bool suits_unrolling(const ForestStatistics& forest) {
  return forest.max_depth <= kMaxPadding * forest.mean_depth;
}

/// Returns true if the model says how many training rows came to the nodes, for every tree with a split.
bool knows_covers(const Model& model) {
  const auto counted = [](const Tree& tree) { return tree.nodes.front().cover > 0; };
  const auto leaf = [](const Tree& tree) { return tree.nodes.front().kind == NodeKind::Leaf; };
  return std::any_of(model.trees.begin(), model.trees.end(), counted) &&
         std::all_of(model.trees.begin(), model.trees.end(),
                     [&](const Tree& tree) { return counted(tree) || leaf(tree); });
}

/// The layouts of trees that are walked by rank codes; None: trees are walked by values.
enum class Codes { None, Tables, TreeTables, Nodes };

/// Adds a sparse layout, with nodes ordered along the likeliest walks if covers are known: deep forests
/// are 1.2 times as fast in calls of up to 16 rows, and as fast as before from 512 rows on.
Schedule& lay_out_sparse(Schedule& schedule, bool covers) {
  if (covers) schedule.tileTree("tree", 1, "probability");
  return schedule.layout("tree", "sparse");
}

void add_blocks(Schedule& schedule, Codes codes, bool covers, std::uint32_t rows) {
  schedule.tile("batch", "b0", "b1", rows).reorder("b0", "tree", "b1");
  if (codes == Codes::Tables || codes == Codes::TreeTables) {
    schedule.parallel("b0").encode("u8");
    if (codes == Codes::TreeTables) schedule.layout("tree", "treeTables");
  } else {
    schedule.tile("b1", "b2", "b3", kLanes).parallel("b0");
    if (codes == Codes::Nodes) schedule.encode("u8");
    lay_out_sparse(schedule, covers).interleave("b3");
  }
}

}  // namespace

Schedule automatic_schedule(const Model& model) {
  const ForestStatistics forest = statistics(model);
  const std::uint64_t leaves = most_leaves(model);
  const bool fits_tables = leaves <= kMaxTableLeaves;
  const bool coded = suits_codes(model, forest, fits_tables);
  const std::uint64_t columns = scheduler::most_columns(model, forest);
  const bool covers = knows_covers(model);
  Schedule schedule;
  const bool oblivious =
      coded && fits_tables && std::all_of(model.trees.begin(), model.trees.end(), is_oblivious);
  const bool small =
      coded && !oblivious && leaves <= kMaxTreeSlots + 1 &&
      static_cast<double>(forest.leaves) <= kMaxMeanLeavesOfSmall * static_cast<double>(model.trees.size());
  schedule.plan(oblivious || small ? kFewRowsOfFast : kFewRows).tile("tree", "t0", "t1", kLanes);
  if (forest.category_splits != 0 && fits_tables && columns > Sparse4View::kMaxColumns) {
    schedule.encode("u8");
  } else {
    lay_out_sparse(schedule, covers).interleave("t1");
    if (coded && (columns <= kMaxRegisterColumns || forest.category_splits != 0)) schedule.encode("u8");
    if (suits_unrolling(forest)) schedule.unrollWalk("t1");
  }
  const Codes codes = !coded ? Codes::None : fits_tables ? Codes::Tables : Codes::Nodes;
  if (small) {
    schedule.plan(kTreeTableRows);
    add_blocks(schedule, Codes::TreeTables, covers, kTreeTableRows);
  }
  schedule.plan(1024);
  add_blocks(schedule, codes, covers, 256);
  schedule.plan("BATCH");
  add_blocks(schedule, codes, covers, 512);
  return schedule;
}

}  // namespace forestvm
