// See schedule_lines.hpp.
#include "cli/schedule_lines.hpp"

#include <cstdio>
#include <map>

#include <forestvm/compile.hpp>
#include <forestvm/internal/formatted.hpp>

#include "cli/io/output_file.hpp"
#include "scheduler/plan_ranges.hpp"

namespace forestvm::cli {
namespace {

/// Points between flushes, so that a reader of a pipe sees lines early.
constexpr std::size_t kFlushedPoints = 64;

std::string heading(const scheduler::ScheduleSpace& space) {
  std::string text = formatted("# space {}: {} points\n", space.name, space.points);
  for (const scheduler::SpaceParameter& parameter : space.parameters) {
    text += formatted("# {}:", parameter.name);
    for (const std::string_view value : parameter.values) text += " " + std::string(value);
    text += formatted("; {}\n", parameter.meaning);
  }
  return text + "# point\tverdict\tvalues\tschedule, or why not\n";
}

}  // namespace

std::string one_line(std::string_view schedule) {
  auto parsed = parse_schedule(schedule);
  if (parsed)
    for (Directive& directive : parsed->directives) directive.remark.clear();
  std::string text = parsed ? print(*parsed) : std::string(schedule);
  while (text.ends_with('\n')) text.pop_back();
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at))
    text.replace(at, 1, "; ");
  return text;
}

std::vector<PlanRemark> plan_remarks(std::string_view schedule) {
  std::vector<PlanRemark> plans;
  const auto parsed = parse_schedule(schedule);
  if (!parsed) return plans;
  for (const scheduler::PlanRange& plan : scheduler::plan_ranges(*parsed)) {
    if (plan.directive == nullptr) return plans;
    std::string rows = std::to_string(plan.least);
    if (plan.most == scheduler::kAnyRows)
      rows += " rows and more";
    else if (plan.most == plan.least)
      rows += plan.least == 1 ? " row" : " rows";
    else
      rows += formatted(" to {} rows", plan.most);
    if (!plan.target.empty())
      rows += " on " + plan.target;
    else if (plan.shares_rows)
      rows += " on other targets";
    plans.push_back({plan.least, plan.most, std::move(rows), plan.directive->remark});
  }
  return plans;
}

Result<void> list_space(const scheduler::ScheduleSpace& space, const Model& model, Contract contract) {
  FVM_ASSIGN(OutputFile out, OutputFile::open("-"));
  FVM_TRY(out.write(heading(space)));
  CompileOptions options;
  options.contract = contract;
  options.strict = true;
  std::map<std::string, std::size_t> first;  // the first point that has each schedule
  std::size_t legal = 0, refused = 0;
  for (std::size_t point = 0; point < space.points; ++point) {
    const Schedule schedule = space.schedule(model, point);
    const auto [known, is_new] = first.emplace(print(schedule), point);
    std::string line = std::to_string(point);
    const std::string values = '\t' + scheduler::point_name(space, point) + '\t';
    if (!is_new) {
      line += formatted("\tsame{}has the schedule of point {}", values, known->second);
    } else if (const auto compiled = compile(model, schedule, options); compiled) {
      ++legal;
      line += formatted("\tlegal{}{}", values, one_line(known->first));
    } else {
      if (compiled.error().code != ErrorCode::Refused) return compiled.error();
      ++refused;
      line += formatted("\trefused{}{}", values, compiled.error().text());
    }
    FVM_TRY(out.write(line + '\n'));
    if (point % kFlushedPoints == 0) FVM_TRY(out.flush());
  }
  FVM_TRY(out.write(formatted("# {} legal, {} refused, {} with the schedule of an earlier point\n", legal,
                              refused, space.points - first.size())));
  if (legal == 0 && contract == Contract::Trainer) FVM_TRY(out.write(formatted("# {}\n", kOtherContracts)));
  return out.finish();
}

}  // namespace forestvm::cli
