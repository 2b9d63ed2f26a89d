// See walk_rules.hpp. There are plans for calls of a few rows, whose lanes are trees, and plans for more rows, which
// are walked in parallel blocks, tree by tree:
// - trees of up to 256 leaves: rank codes and tables; for fewer rows than a block has and small trees, tree tables;
// - few trees and many features, so that encoding would cost more than walks: gathers of values;
// - larger trees: gathers with rows in the lanes;
// - categorical splits: always rank codes, for larger trees by tables at the top of trees;
// - tables on AVX-512: blocks from fewer rows on, in a plan for that target.
// few_rows_cost.hpp estimates what calls of few rows cost.
#include "scheduler/choose/walk_rules.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/tables.hpp>
#include <forestvm/internal/formatted.hpp>

#include "scheduler/choose/few_rows_cost.hpp"

namespace forestvm::scheduler {
namespace {

/// A block of rows costs as much as this number of rows walked one by one.
constexpr std::uint32_t kFewRows = 16;
/// Replaces kFewRows for oblivious and small trees, whose blocks cost less.
constexpr std::uint32_t kFewRowsOfFast = 6;
/// The most rows that are walked one by one with AVX-512. There, blocks of tables are faster from 13 rows on (1.1 to 2
/// times at 16 rows; with AVX2 0.8 to 1.3 times), where encoding costs little beside the walks.
constexpr std::uint32_t kFewRowsOfAvx512 = 12;
/// The most values to encode for each step with which kFewRowsOfAvx512 takes the place of kFewRows.
constexpr double kMaxValuesPerStepOfAvx512 = 0.5;
/// Trees with at most this many leaves on average are walked faster through tree tables than through a table
/// for each level, in calls of up to kTreeTableRows rows. (More tests mean more columns to choose from in
/// each step, which only AVX-512 does at a constant cost: with 47 leaves, AVX-512 is 1.13 times as fast, AVX2
/// 0.67 times.)
constexpr double kMaxMeanLeavesOfSmall = 24;
constexpr std::uint32_t kTreeTableRows = kCodeRows;
/// Calls of up to this many rows are cut into blocks of 256 rows where 512 rows of values or codes would leave the
/// cache. Elsewhere blocks of 512 are 1.1 times as fast from 512 rows on, and the runtime cuts them among threads.
constexpr std::uint32_t kRowsOfSmallBlocks = 1024;
constexpr std::uint32_t kLanes = 128;  ///< number of walks in lockstep: eight vectors of the widest target

/// The largest ratio of the greatest to the mean depth of trees with which walks do without leaf checks.
constexpr double kMaxPadding = 1.25;
constexpr std::uint64_t kMaxRegisterColumns = 256;  ///< most columns whose codes are looked up in registers

/// The most values to encode for each step with which walks compare codes. Encoding a value costs less than half a step
/// by gathers with AVX-512, and one and a half with AVX2, where it is a loss near the limit (the epsilon model: 1.4
/// times as fast with AVX-512, 0.75 times with AVX2).
constexpr double kMaxValuesPerStep = 2.5;

/// Returns whether walks that compare codes suit the model better than walks that compare values.
bool suits_codes(const ForestFacts& facts) {
  return facts.has_categories() ||
         (facts.fits_tables && facts.forest.features_used <= kMaxValuesPerStep * facts.steps());
}

/// Returns the walk that takes one row after another, with trees in the lanes.
WalkChoice tree_lanes(const ForestFacts& facts, bool coded) {
  const bool tables = facts.has_categories() && facts.fits_tables && facts.columns > Sparse4View::kMaxColumns;
  const bool unrolled = !tables && facts.forest.max_depth <= kMaxPadding * facts.forest.mean_depth;
  return {Lanes::Trees, tables ? WalkLayout::Tables : WalkLayout::Sparse, coded, kLanes, 0, unrolled};
}

/// Returns the walk that takes blocks of rows.
WalkChoice row_lanes(WalkLayout layout, bool coded, std::uint32_t block) {
  return {Lanes::Rows, layout, coded, layout == WalkLayout::Sparse ? kLanes : 1, block};
}

/// Says why blocks of rows are walked by values.
std::string why_values(const ForestFacts& facts) {
  if (!facts.fits_tables)
    return formatted("walks values, because the largest tree has {} leaves, tables at most {}",
                     facts.most_leaves, kMaxTableLeaves);
  return formatted("walks values, because {} features to encode are too many for {} steps of a row",
                   facts.forest.features_used, static_cast<std::uint64_t>(facts.steps()));
}

std::string why_codes(const ForestFacts& facts, WalkLayout layout) {
  if (layout == WalkLayout::Sparse) return "walks codes, which categorical splits need";
  if (layout == WalkLayout::TopTables)
    return formatted("walks tables of codes at the top of trees, because the largest tree has {} leaves",
                     facts.most_leaves);
  return formatted("walks {} of codes, because trees have {} leaves on average, at most {}",
                   layout == WalkLayout::TreeTables ? "tree tables" : "tables",
                   std::lround(facts.mean_leaves()), facts.most_leaves);
}

/// Adds the plans for calls of up to `most` rows, without those that would end before `least` rows. They walk values
/// for the numbers of rows at which encoding does not pay.
void add_few_rows(std::vector<PlanChoice>& plans, const ForestFacts& facts, bool coded, std::uint32_t least,
                  std::uint32_t most) {
  const auto add = [&](bool by_codes, std::uint32_t rows, const std::string& why) {
    plans.push_back({{rows}, tree_lanes(facts, by_codes), why});
  };
  if (facts.has_categories()) return add(coded, most, why_codes(facts, WalkLayout::Sparse));
  if (!coded) return add(false, most, why_values(facts));
  if (facts.columns > kMaxRegisterColumns)
    return add(
        false, most,
        formatted("walks values, because {} columns of codes are more than registers hold", facts.columns));
  const FewRowsCost cost{static_cast<double>(facts.forest.features_used), facts.steps()};
  const std::uint32_t values = std::min(cost.rows_by_values(), most);
  if (values >= least) add(false, values, cost.why_values(values));
  if (values != most) add(true, most, cost.why_codes(most));
}

}  // namespace

std::vector<PlanChoice> plans_by_rules(const ForestFacts& facts) {
  const bool coded = suits_codes(facts);
  const bool oblivious = coded && facts.fits_tables && facts.oblivious;
  const bool small = coded && !oblivious && facts.most_leaves <= kMaxTreeSlots + 1 &&
                     facts.mean_leaves() <= kMaxMeanLeavesOfSmall;
  const bool tops = facts.has_categories() && facts.suits_top_tables;
  const WalkLayout layout = coded && facts.fits_tables ? WalkLayout::Tables
                            : tops                     ? WalkLayout::TopTables
                                                       : WalkLayout::Sparse;
  const bool by_target = layout == WalkLayout::Tables && !oblivious && !small && !facts.has_categories() &&
                         facts.forest.features_used <= kMaxValuesPerStepOfAvx512 * facts.steps();
  std::vector<PlanChoice> plans;
  if (by_target) {
    add_few_rows(plans, facts, coded, 1, kFewRowsOfAvx512);
    plans.push_back({{kFewRows, "avx512"},
                     row_lanes(layout, coded, kSmallBlock),
                     why_codes(facts, layout) + "; with AVX-512 blocks of these are faster from 13 rows on"});
    add_few_rows(plans, facts, coded, kFewRows, kFewRows);
  } else {
    add_few_rows(plans, facts, coded, 1, oblivious || small ? kFewRowsOfFast : kFewRows);
  }
  if (small)
    plans.push_back({{kTreeTableRows},
                     row_lanes(WalkLayout::TreeTables, coded, kTreeTableRows),
                     why_codes(facts, WalkLayout::TreeTables)});
  const std::string why = coded ? why_codes(facts, layout) : why_values(facts);
  if (layout == WalkLayout::Sparse || block_of_codes(facts) == kSmallBlock)
    plans.push_back({{kRowsOfSmallBlocks}, row_lanes(layout, coded, kSmallBlock), why});
  plans.push_back({{kBatchSizeName}, row_lanes(layout, coded, kLargeBlock), why});
  return plans;
}

}  // namespace forestvm::scheduler
