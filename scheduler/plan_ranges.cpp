// See plan_ranges.hpp.
#include "scheduler/plan_ranges.hpp"

namespace forestvm::scheduler {

TargetSet targets_of_plan(std::string_view target) {
  if (target.empty()) return TargetSet::Any;
  return target == "avx512fp16" ? TargetSet::Fp16
         : target == "avx512"   ? TargetSet::Avx512Up
                                : TargetSet::Avx2Up;
}

std::vector<PlanRange> plan_ranges(const Schedule& schedule) {
  const std::vector<Directive>& directives = schedule.directives;
  std::vector<PlanRange> plans;
  for (std::size_t i = 0; i < directives.size(); ++i) {
    if (directives[i].kind != DirectiveKind::Plan) continue;
    const std::vector<Argument>& arguments = directives[i].arguments;
    PlanRange plan{&directives[i], i + 1, directives.size(), 1, kAnyRows, {}, false};
    if (arguments.front().is_number()) plan.most = arguments.front().number();
    if (arguments.size() > 1) plan.target = arguments[1].name();
    if (!plans.empty()) {
      PlanRange& before = plans.back();
      before.end = i;
      plan.shares_rows = !before.target.empty();
      plan.least = plan.shares_rows ? before.least : before.most + 1;
    }
    plans.push_back(std::move(plan));
  }
  if (plans.empty()) plans.push_back({nullptr, 0, directives.size(), 1, kAnyRows, {}, false});
  return plans;
}

}  // namespace forestvm::scheduler
