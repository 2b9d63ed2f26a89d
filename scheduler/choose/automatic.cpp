// The automatic schedule for the host. Its plans are those of least predicted cost (walk_prediction.hpp); where costs
// cannot be predicted, rules choose (walk_rules.hpp). The remark of each plan says why it was chosen.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/named_schedules.hpp>

#include "scheduler/choose/share_few_rows.hpp"
#include "scheduler/choose/walk_choice.hpp"
#include "scheduler/choose/walk_prediction.hpp"
#include "scheduler/choose/walk_rules.hpp"

namespace forestvm {
namespace {

using scheduler::ForestFacts;
using scheduler::PlanChoice;

/// The most values to encode for each step for which float64 rows are walked by codes, in models that compare in
/// float64. Encoding a float64 value costs as much as converting it, which walks that compare values need.
constexpr double kMaxDoublesPerStep = 25;
/// The most rows of a pass of the host: larger calls are cut into passes. A plan for more rows runs only for rows that
/// the host predicts as if there were more of them.
constexpr std::uint32_t kMaxPassRows = std::uint32_t{1} << 30;
constexpr std::uint32_t kBlockOfDoubles = 512;  ///< Rows of a block of float64 rows.

/// Returns whether float64 rows need a plan of their own that walks codes, because float32 rows are walked by values.
bool codes_suit_doubles(const ForestFacts& facts, const PlanChoice& last) {
  return !last.walk.coded && facts.fits_tables && facts.is_float64 && !facts.has_made_columns &&
         facts.forest.features_used <= kMaxDoublesPerStep * facts.steps();
}

/// Turns the plans for calls of up to `from` rows into plans for `to`; each is a number of rows, or BATCH.
void rename_calls(std::vector<PlanChoice>& plans, const Argument& from, const Argument& to) {
  for (PlanChoice& plan : plans)
    if (plan.calls.front() == from) plan.calls.front() = to;
}

/// Keeps the plans for calls of `rows` rows, and lets the last of them take all larger calls. Plans for one number of
/// rows follow each other.
void keep_plans_for(std::vector<PlanChoice>& plans, std::span<const std::uint32_t> rows) {
  std::vector<PlanChoice> kept;
  std::uint64_t below = 0;  // calls of up to this number of rows have earlier plans
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Argument& calls = plans[i].calls.front();
    const std::uint64_t most = calls.is_number() ? calls.number() : UINT64_MAX;
    if (std::any_of(rows.begin(), rows.end(),
                    [&](std::uint64_t count) { return count > below && count <= most; }))
      kept.push_back(plans[i]);
    if (i + 1 < plans.size() && plans[i + 1].calls.front() != calls) below = most;
  }
  rename_calls(kept, Argument(kept.back().calls.front()), kBatchSizeName);
  plans = std::move(kept);
}

std::vector<PlanChoice> chosen_plans(const ForestFacts& facts, std::span<const std::uint32_t> rows) {
  const std::string why_not = scheduler::why_not_predicted(facts);
  if (why_not.empty()) return scheduler::plans_by_prediction(facts, rows);
  std::vector<PlanChoice> plans = scheduler::plans_by_rules(facts);
  for (PlanChoice& plan : plans) plan.why += "; costs are not predicted: " + why_not;
  if (!rows.empty()) keep_plans_for(plans, rows);
  return plans;
}

}  // namespace

Schedule automatic_schedule(const Model& model, std::span<const std::uint32_t> rows, unsigned threads) {
  const ForestFacts facts = scheduler::facts_of(model);
  std::vector<PlanChoice> plans = chosen_plans(facts, rows);
  if (threads > 1) scheduler::share_few_rows(facts, rows, threads, plans);
  if (codes_suit_doubles(facts, plans.back())) {
    rename_calls(plans, kBatchSizeName, kMaxPassRows);
    plans.push_back(
        {{kBatchSizeName},
         {scheduler::Lanes::Rows, scheduler::WalkLayout::Tables, true, 1, kBlockOfDoubles},
         "walks tables of codes, for float64 rows, whose values take as long to convert as to encode"});
  }
  Schedule schedule;
  for (const PlanChoice& plan : plans) {
    schedule.directives.push_back({DirectiveKind::Plan, plan.calls, {}, plan.why});
    const Schedule walk = host_template_schedule(template_point(plan.walk, facts));
    schedule.directives.insert(schedule.directives.end(), walk.directives.begin(), walk.directives.end());
  }
  return schedule;
}

}  // namespace forestvm
