// Schedule -> its plans, each from its plan directive to the next; a schedule without such a directive is one plan.
// No number of rows is left without a plan.
#include "scheduler/compilation.hpp"

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

Result<std::vector<Plan>> plans_of(const Schedule& schedule) {
  std::vector<Plan> plans;
  const auto& directives = schedule.directives;
  for (std::size_t i = 0; i < directives.size(); ++i) {
    if (directives[i].kind != DirectiveKind::Plan) continue;
    const auto wrong = [&](const std::string& what) {
      return refused(formatted("{}: {}", location_of(schedule, i), print(directives[i])), what);
    };
    if (plans.empty() && i != 0) return wrong("directives stand before the first plan");
    if (plans.size() == kMaxPlans) return wrong(formatted("more than {} plans", kMaxPlans));
    const auto most = most_rows(directives[i].arguments[0]);
    if (!most) return wrong(most.error().message);
    Plan plan{i + 1, directives.size(), 0, *most};
    if (!plans.empty()) {
      if (*most <= plans.back().most) return wrong("plans must be for more and more rows");
      plans.back().end_directive = i;
      plan.least = plans.back().most + 1;
    }
    plans.push_back(plan);
  }
  if (plans.empty()) plans.push_back({0, directives.size(), 0, UINT32_MAX});
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
