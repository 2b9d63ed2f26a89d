// The automatic schedule for the host. It has plans for calls of a few rows, whose lanes are trees, and plans for more
// rows, which are walked in parallel blocks, tree by tree:
// - trees of up to 256 leaves: rank codes and tables; for fewer rows than a block has and small trees, tree tables;
// - few trees and many features, so that encoding would cost more than walks: gathers of values;
// - larger trees: gathers with rows in the lanes;
// - categorical splits: always rank codes;
// - tables on AVX-512: blocks from fewer rows on, in a plan for that target.
// The remark of each plan says why it was chosen. few_rows_cost.hpp estimates what calls of few rows cost.
#include <algorithm>
#include <cmath>
#include <vector>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/tree_tables.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/statistics.hpp>
#include <forestvm/named_schedules.hpp>

#include "scheduler/choose/few_rows_cost.hpp"
#include "scheduler/normal_form.hpp"
#include "scheduler/rank_table.hpp"

namespace forestvm {
namespace {

/// A block of rows costs as much as this number of rows walked one by one.
constexpr std::uint32_t kFewRows = 16;
/// Replaces kFewRows for oblivious and small trees, whose blocks cost less.
constexpr std::uint32_t kFewRowsOfFast = 6;
/// With AVX-512, blocks of tables are faster than rows walked one by one from 13 rows on (1.1 to 2 times at 16 rows;
/// with AVX2 0.8 to 1.3 times), where encoding costs little beside the walks.
constexpr std::uint32_t kFewRowsOfAvx512 = 12;
constexpr double kMaxValuesPerStepOfAvx512 = 0.5;
/// Largest ratio of the deepest tree's depth to the mean depth with which walks are unrolled.
constexpr double kMaxPadding = 1.25;
/// Trees with at most this many leaves on average are walked faster through tree tables than through a table
/// for each level, in calls of up to kTreeTableRows rows. (More tests mean more columns to choose from in
/// each step, which only AVX-512 does at a constant cost: with 47 leaves, AVX-512 is 1.13 times as fast, AVX2
/// 0.67 times.)
constexpr double kMaxMeanLeavesOfSmall = 24;
constexpr std::uint32_t kTreeTableRows = kCodeRows;
/// Calls of up to this many rows are cut into blocks of 256 rows where 512 rows of values or codes would leave the
/// cache. Elsewhere blocks of 512 are 1.1 times as fast from 512 rows on, and the runtime cuts them among threads.
constexpr std::uint32_t kRowsOfSmallBlocks = 1024;
constexpr std::uint32_t kSmallBlock = 256, kLargeBlock = 512;
constexpr std::uint64_t kMaxCachedCodes = 512u << 10;
constexpr std::uint32_t kLanes = 128;  ///< number of walks in lockstep: eight vectors of the widest target

/// Returns the number of leaves of the largest tree.
std::uint64_t most_leaves(const Model& model) {
  std::uint64_t most = 0;
  for (const Tree& tree : model.trees)
    most = std::max<std::uint64_t>(most, static_cast<std::uint64_t>(std::count_if(
                                             tree.nodes.begin(), tree.nodes.end(),
                                             [](const Node& n) { return n.kind == NodeKind::Leaf; })));
  return most;
}

/// Returns true if all nodes of a level make the same test, and all leaves are below the last level.
bool is_oblivious(const Tree& tree) {
  std::vector<std::size_t> level{0}, below;
  while (tree.nodes[level.front()].kind != NodeKind::Leaf) {
    below.clear();
    for (const std::size_t at : level) {
      const Node& node = tree.nodes[at];
      if (!scheduler::same_test(node, tree.nodes[level.front()])) return false;
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

/// Adds a sparse layout, with nodes ordered along the likeliest walks if covers are known. That order makes calls
/// of deep forests 1.2 times as fast with up to 16 rows, and changes nothing from 512 rows on.
Schedule& lay_out_sparse(Schedule& schedule, bool covers) {
  if (covers) schedule.tileTree("tree", 1, "probability");
  return schedule.layout("tree", "sparse");
}

/// The calls for which a plan is: those of up to a number of rows, or BATCH, on CPUs that have a target, if one is
/// named.
using PlanFor = std::vector<Argument>;

/// Adds a plan in blocks of `rows`.
void add_blocks(Schedule& schedule, Codes codes, bool covers, const PlanFor& calls, std::uint32_t rows,
                const std::string& why) {
  schedule.directives.push_back({DirectiveKind::Plan, calls, {}, why});
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

/// The facts about the model by which the rules choose.
struct Findings {
  ForestStatistics forest;
  std::uint64_t trees, leaves, columns;  ///< trees, leaves of the largest, most columns of codes
  bool fits_tables, coded, covers;

  bool has_categories() const { return forest.category_splits != 0; }
  double steps() const { return forest.mean_depth * static_cast<double>(trees); }
};

/// The limit of values to encode for each step. Encoding a value costs less than half a step by gathers with
/// AVX-512, and one and a half with AVX2, where it is a loss near the limit (the epsilon model: 1.4 times as
/// fast with AVX-512, 0.75 times with AVX2).
constexpr double kMaxValuesPerStep = 2.5;

/// Replaces kMaxValuesPerStep for float64 rows of models that compare in float64. Encoding a value of theirs costs as
/// much as converting it, which walks that compare values need.
constexpr double kMaxDoublesPerStep = 25;
/// The most rows of a pass of the host: larger calls are cut into passes. A plan for more rows runs only for rows that
/// the host predicts as if there were more of them.
constexpr std::uint32_t kMaxPassRows = std::uint32_t{1} << 30;

/// Returns whether walks that compare codes suit the model better than walks that compare values.
bool suits_codes(const Findings& found) {
  return found.has_categories() ||
         (found.fits_tables && found.forest.features_used <= kMaxValuesPerStep * found.steps());
}

/// Returns whether float64 rows need a plan of their own that walks codes, because float32 rows are walked by values.
bool codes_suit_doubles(const Model& model, const Findings& found) {
  return !found.coded && found.fits_tables && model.row_type == ScalarType::Float64 &&
         model.lookups.empty() && model.computed_columns.empty() &&
         static_cast<double>(found.forest.features_used) <= kMaxDoublesPerStep * found.steps();
}

Findings look_at(const Model& model) {
  Findings found{statistics(model),  model.trees.size(), most_leaves(model), 0, false, false,
                 knows_covers(model)};
  found.columns = scheduler::most_columns(found.forest);
  found.fits_tables = found.leaves <= kMaxTableLeaves;
  found.coded = suits_codes(found);
  return found;
}

/// Adds a plan whose lanes are trees, for calls of up to `most` rows.
void add_tree_lanes(Schedule& schedule, const Findings& found, bool coded, std::uint32_t most,
                    const std::string& why) {
  schedule.plan(most).directives.back().remark = why;
  schedule.tile("tree", "t0", "t1", kLanes);
  if (found.has_categories() && found.fits_tables && found.columns > Sparse4View::kMaxColumns) {
    schedule.encode("u8");
    return;
  }
  lay_out_sparse(schedule, found.covers).interleave("t1");
  if (coded) schedule.encode("u8");
  if (suits_unrolling(found.forest)) schedule.unrollWalk("t1");
}

/// Says why blocks of rows are walked by values.
std::string why_values(const Findings& found) {
  if (!found.fits_tables)
    return formatted("walks values, because the largest tree has {} leaves, tables at most {}", found.leaves,
                     kMaxTableLeaves);
  return formatted("walks values, because {} features to encode are too many for {} steps of a row",
                   found.forest.features_used, static_cast<std::uint64_t>(found.steps()));
}

std::string why_codes(const Findings& found, Codes codes) {
  if (codes == Codes::Nodes) return "walks codes, which categorical splits need";
  const double mean =
      static_cast<double>(found.forest.leaves) / static_cast<double>(std::max<std::uint64_t>(found.trees, 1));
  return formatted("walks {} of codes, because trees have {} leaves on average, at most {}",
                   codes == Codes::TreeTables ? "tree tables" : "tables", std::lround(mean), found.leaves);
}

/// Adds the plans for calls of up to `most` rows, without those that would end before `least` rows. They walk values
/// for the numbers of rows at which encoding does not pay.
void add_few_rows(Schedule& schedule, const Findings& found, std::uint32_t least, std::uint32_t most) {
  if (found.has_categories())
    return add_tree_lanes(schedule, found, found.coded, most, why_codes(found, Codes::Nodes));
  if (!found.coded) return add_tree_lanes(schedule, found, false, most, why_values(found));
  if (found.columns > kMaxRegisterColumns)
    return add_tree_lanes(
        schedule, found, false, most,
        formatted("walks values, because {} columns of codes are more than registers hold", found.columns));
  const scheduler::FewRowsCost cost{static_cast<double>(found.forest.features_used), found.steps()};
  const std::uint32_t values = std::min(cost.rows_by_values(), most);
  if (values >= least) add_tree_lanes(schedule, found, false, values, cost.why_values(values));
  if (values != most) add_tree_lanes(schedule, found, true, most, cost.why_codes(most));
}

}  // namespace

Schedule automatic_schedule(const Model& model) {
  const Findings found = look_at(model);
  const bool oblivious =
      found.coded && found.fits_tables && std::all_of(model.trees.begin(), model.trees.end(), is_oblivious);
  const bool small = found.coded && !oblivious && found.leaves <= kMaxTreeSlots + 1 &&
                     static_cast<double>(found.forest.leaves) <=
                         kMaxMeanLeavesOfSmall * static_cast<double>(model.trees.size());
  Schedule schedule;
  const Codes codes = !found.coded ? Codes::None : found.fits_tables ? Codes::Tables : Codes::Nodes;
  const bool by_target =
      codes == Codes::Tables && !oblivious && !small && !found.has_categories() &&
      static_cast<double>(found.forest.features_used) <= kMaxValuesPerStepOfAvx512 * found.steps();
  if (by_target) {
    add_few_rows(schedule, found, 1, kFewRowsOfAvx512);
    add_blocks(schedule, codes, found.covers, {kFewRows, "avx512"}, kSmallBlock,
               why_codes(found, codes) + "; with AVX-512 blocks of these are faster from 13 rows on");
    add_few_rows(schedule, found, kFewRows, kFewRows);
  } else {
    add_few_rows(schedule, found, 1, oblivious || small ? kFewRowsOfFast : kFewRows);
  }
  if (small)
    add_blocks(schedule, Codes::TreeTables, found.covers, {kTreeTableRows}, kTreeTableRows,
               why_codes(found, Codes::TreeTables));
  const std::string why = codes == Codes::None ? why_values(found) : why_codes(found, codes);
  if (codes != Codes::Tables || found.columns * kLargeBlock > kMaxCachedCodes)
    add_blocks(schedule, codes, found.covers, {kRowsOfSmallBlocks}, kSmallBlock, why);
  const bool for_doubles = codes_suit_doubles(model, found);
  add_blocks(schedule, codes, found.covers, {for_doubles ? Argument(kMaxPassRows) : Argument(kBatchSizeName)},
             kLargeBlock, why);
  if (for_doubles)
    add_blocks(schedule, Codes::Tables, found.covers, {kBatchSizeName}, kLargeBlock,
               "walks tables of codes, for float64 rows, whose values take as long to convert as to encode");
  return schedule;
}

}  // namespace forestvm
