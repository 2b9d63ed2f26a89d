// Schedule -> its plans, each from its plan directive to the next; a schedule without such a directive is one plan.
// Plans for one number of rows follow each other, the one with the widest target first. No number of rows is left
// without a plan on any target.
#include "scheduler/compilation.hpp"

#include <algorithm>
#include <iterator>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::scheduler {
namespace {

/// The most plans of a schedule: more are a mistake.
constexpr std::size_t kMaxPlans = 16;

/// Returns the number of rows of the largest call that a plan directive is for.
Result<std::uint32_t> most_rows(const Argument& argument) {
  if (!argument.is_number()) {
    if (argument.name() == kBatchSizeName) return UINT32_MAX;
    return refused("a plan is for a number of rows, or BATCH");
  }
  if (argument.number() >= UINT32_MAX) return refused("a plan for more than any call's rows: write BATCH");
  return static_cast<std::uint32_t>(argument.number());
}

/// Returns the CPU targets that a plan directive names: those with at least these instructions.
TargetSet targets_of(const Directive& directive) {
  if (directive.arguments.size() < 2) return TargetSet::Any;
  const std::string& name = directive.arguments[1].name();
  return name == "avx512fp16" ? TargetSet::Fp16 : name == "avx512" ? TargetSet::Avx512Up : TargetSet::Avx2Up;
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

/// Refuses a schedule that has no plan for some targets, where a plan for these rows on the others should have one.
Failure no_plan_without(const std::string& where, const Directive& last) {
  const std::string rest = print(Directive{DirectiveKind::Plan, {last.arguments[0]}, {}});
  return refused(where, "no plan is for these rows on CPUs without {}: {} must follow",
                 last.arguments[1].name(), rest);
}

Result<std::vector<Plan>> plans_of(const Schedule& schedule) {
  std::vector<Plan> plans;
  const auto& directives = schedule.directives;
  std::size_t last = 0;               // the last plan directive
  TargetSet before = TargetSet::Any;  // its targets
  for (std::size_t i = 0; i < directives.size(); ++i) {
    if (directives[i].kind != DirectiveKind::Plan) continue;
    const auto place = [&](std::size_t at) {
      return formatted("{}: {}", location_of(schedule, at), print(directives[at]));
    };
    const auto wrong = [&](const std::string& what) { return refused(place(i), what); };
    if (plans.empty() && i != 0) return wrong("directives stand before the first plan");
    if (plans.size() == kMaxPlans) return wrong(formatted("more than {} plans", kMaxPlans));
    const auto most = most_rows(directives[i].arguments[0]);
    if (!most) return wrong(most.error().message);
    const TargetSet targets = targets_of(directives[i]);
    Plan plan{i + 1, directives.size(), 0, *most, targets};
    if (before != TargetSet::Any) {
      if (*most != plans.back().most) return no_plan_without(place(last), directives[last]);
      if (count_of(targets) <= count_of(before))
        return wrong(
            "plans for one number of rows must be for avx512fp16, avx512, avx2 and others, in this order");
      plan.least = plans.back().least;
      plan.targets = without(targets, before);
    } else if (!plans.empty()) {
      if (*most <= plans.back().most) return wrong("plans must be for more and more rows");
      plan.least = plans.back().most + 1;
    }
    if (!plans.empty()) plans.back().end_directive = i;
    plans.push_back(plan);
    last = i;
    before = targets;
  }
  if (plans.empty()) plans.push_back({0, directives.size(), 0, UINT32_MAX});
  if (before != TargetSet::Any)
    return no_plan_without(formatted("{}: {}", location_of(schedule, last), print(directives[last])),
                           directives[last]);
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
