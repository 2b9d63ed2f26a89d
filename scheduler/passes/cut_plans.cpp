// Schedule -> its plans, each from its plan directive to the next; a schedule without such a directive is one plan.
// Plans for one number of rows follow each other, the one with the widest target first. No number of rows is left
// without a plan on any target.
#include "scheduler/compilation.hpp"

#include <algorithm>
#include <iterator>

#include <forestvm/internal/formatted.hpp>

#include "scheduler/plan_ranges.hpp"

namespace forestvm::scheduler {
namespace {

/// The most plans of a schedule: more are a mistake.
constexpr std::size_t kMaxPlans = 16;

/// Returns what is wrong with the number of rows of a plan directive; null if nothing is.
const char* wrong_rows(const Argument& rows) {
  if (!rows.is_number())
    return rows.name() == kBatchSizeName ? nullptr : "a plan is for a number of rows, or BATCH";
  return rows.number() < kAnyRows ? nullptr : "a plan for more than any call's rows: write BATCH";
}

/// Returns the targets of `all` that are not among `taken`.
TargetSet without(TargetSet all, TargetSet taken) {
  const auto left_out = [&](CpuTarget target) -> unsigned {
    return !contains(all, target) || contains(taken, target) ? 1 : 0;
  };
  const unsigned avx512 = left_out(CpuTarget::Avx512), fp16 = left_out(CpuTarget::Avx512Fp16);
  return static_cast<TargetSet>(left_out(CpuTarget::Baseline) + 2 * left_out(CpuTarget::Avx2) + 4 * avx512 +
                                8 * (avx512 ^ fp16));
}

std::ptrdiff_t count_of(TargetSet set) {
  return std::count_if(std::begin(kCpuTargets), std::end(kCpuTargets),
                       [&](CpuTarget target) { return contains(set, target); });
}

/// Returns the place of a plan's directive for messages.
std::string place_of(const Schedule& schedule, const PlanRange& plan) {
  return formatted("{}: {}", location_of(schedule, plan.begin - 1), print(*plan.directive));
}

/// Refuses a schedule that has no plan for some targets, where a plan for these rows on the others should follow.
Failure no_plan_without(const Schedule& schedule, const PlanRange& last) {
  const std::string rest = print(Directive{DirectiveKind::Plan, {last.directive->arguments[0]}, {}});
  return refused(place_of(schedule, last), "no plan is for these rows on CPUs without {}: {} must follow",
                 last.target, rest);
}

Result<std::vector<Plan>> plans_of(const Schedule& schedule) {
  const std::vector<PlanRange> ranges = plan_ranges(schedule);
  if (ranges.front().directive == nullptr) return std::vector<Plan>{{0, ranges.front().end, 0, UINT32_MAX}};
  std::vector<Plan> plans;
  TargetSet before = TargetSet::Any;  // the targets of the plan before
  for (const PlanRange& range : ranges) {
    const auto wrong = [&](const std::string& what) { return refused(place_of(schedule, range), what); };
    if (plans.empty() && range.begin != 1) return wrong("directives stand before the first plan");
    if (plans.size() == kMaxPlans) return wrong(formatted("more than {} plans", kMaxPlans));
    if (const char* what = wrong_rows(range.directive->arguments[0])) return wrong(what);
    const TargetSet targets = range.targets();
    if (range.shares_rows) {
      const PlanRange& last = ranges[plans.size() - 1];
      if (range.most != last.most) return no_plan_without(schedule, last);
      if (count_of(targets) <= count_of(before))
        return wrong(
            "plans for one number of rows must be for avx512fp16, avx512, avx2 and others, in this order");
    } else if (range.most < range.least) {
      return wrong("plans must be for more and more rows");
    }
    const bool is_first = range.least == 1;  // calls without rows have the first plan
    plans.push_back({range.begin, range.end, is_first ? 0 : static_cast<std::uint32_t>(range.least),
                     static_cast<std::uint32_t>(range.most),
                     range.shares_rows ? without(targets, before) : targets});
    before = targets;
  }
  if (before != TargetSet::Any) return no_plan_without(schedule, ranges.back());
  if (plans.back().most != UINT32_MAX)
    return refused("schedule", "no plan is for calls of more than {} rows: end it with plan(BATCH)",
                   plans.back().most);
  return plans;
}

}  // namespace

Result<void> cut_plans(Compilation& compilation) {
  FVM_TRY(check_schedule(compilation.schedule));
  FVM_ASSIGN(const std::vector<Plan> plans, plans_of(compilation.schedule));
  compilation.plans.reserve(plans.size());
  for (const Plan& plan : plans)
    compilation.plans.emplace_back(compilation.model, compilation.schedule, compilation.options, plan,
                                   compilation.cut);
  return {};
}

}  // namespace forestvm::scheduler
