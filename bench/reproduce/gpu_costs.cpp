// Calculates the least time of a row on GPUs, by the accounting of kernels/account, for the points of the template of
// GPU schedules and for the named schedules: gpu_costs MODEL ROWS,... DEVICE,... EVERY. EVERY is 1 for all points, or n
// for each n-th one; the points that algorithm 1 tries are always among them. Prints lines of columns, between tabs:
//
//   point      NUMBER  FIRST  US...   FIRST: the numbers of rows for which algorithm 1 measures the point first, or -
//   refused    NUMBER  REASON
//   named      NAME    US...
//   algorithm  ROWS    DEVICE NUMBER TRIED   the point that algorithm 1 chooses, and how many it tried
//
// US... are microseconds per row, for each number of rows and each of its devices; - where linking refuses the program
// or the accounting lacks a layout's costs. Sums may be made in any order, as in SilvanForge.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>

#include "kernels/account/accounting.hpp"
#include "scheduler/choose/algorithm_1.hpp"
#include "scheduler/choose/schedule_space.hpp"

namespace {

using namespace forestvm;
using scheduler::GpuTemplatePoint;

/// A call: its number of rows and the GPU that runs it.
struct Case {
  std::uint32_t rows;
  const kernels::DeviceModel* device;
};

/// Microseconds per row, in the order of the cases.
using Costs = std::vector<std::optional<double>>;

std::vector<std::string_view> words(std::string_view list) {
  std::vector<std::string_view> all;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] != ',') continue;
    all.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return all;
}

/// Returns a number from 1 on; 0 if the text is not one.
std::uint32_t number_of(std::string_view text) {
  std::uint32_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? number : 0;
}

/// Returns the cases; empty if a number or a device is unknown.
std::vector<Case> cases_of(std::string_view rows, std::string_view devices) {
  std::vector<Case> cases;
  for (const std::string_view text : words(rows))
    for (const std::string_view name : words(devices)) {
      const auto known = kernels::device_models();
      const auto device = std::find_if(known.begin(), known.end(),
                                       [&](const kernels::DeviceModel& model) { return model.name == name; });
      if (number_of(text) == 0 || device == known.end()) return {};
      cases.push_back({number_of(text), &*device});
    }
  return cases;
}

Result<Costs> costs_of(const Model& model, const Schedule& schedule, const std::vector<Case>& cases) {
  CompileOptions options;
  options.contract = Contract::Fast;
  FVM_ASSIGN(const auto compiled, compile(model, schedule, options));
  Costs costs;
  for (const Case& one : cases) {
    const auto call = kernels::account(compiled.program, {one.rows, one.rows, OutputKind::Raw}, *one.device);
    costs.emplace_back();
    if (call.ok() && call->counted)
      costs.back() = 1e6 / std::min({call->rates.issue, call->rates.load, call->rates.memory});
  }
  return costs;
}

void print_costs(const Costs& costs) {
  for (const std::optional<double>& cost : costs) cost ? std::printf("\t%.6g", *cost) : std::printf("\t-");
  std::printf("\n");
}

/// Returns the numbers of rows for which algorithm 1 measures a point first, by the points' names.
std::map<std::string, std::set<std::uint32_t>> first_points(const Model& model,
                                                            const std::vector<Case>& cases) {
  std::map<std::string, std::set<std::uint32_t>> first;
  for (const Case& one : cases)
    for (const GpuTemplatePoint& point : scheduler::algorithm_1_points(one.rows, model.num_features))
      first[print(point)].insert(one.rows);
  return first;
}

std::string joined(const std::set<std::uint32_t>& numbers) {
  std::string text;
  for (const std::uint32_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text.empty() ? "-" : text;
}

/// The costs of points, by their names.
struct Point {
  std::size_t number;
  Costs costs;
};
using Points = std::map<std::string, Point>;

Points account_points(const Model& model, const std::vector<Case>& cases, std::size_t every) {
  const auto first = first_points(model, cases);
  Points points;
  for (std::size_t number = 0; number < scheduler::kGpuTemplatePoints; ++number) {
    const GpuTemplatePoint point = scheduler::gpu_template_point(number);
    GpuTemplatePoint plain = point;  // algorithm 1 may try the point with shared reduction, too
    plain.shared_reduce = false;
    if (number % every != 0 && !first.contains(print(plain))) continue;
    const auto costs = costs_of(model, gpu_template_schedule(model, point), cases);
    if (!costs.ok()) {
      std::printf("refused\t%zu\t%s\n", number, costs.error().text().c_str());
      continue;
    }
    const auto rows = first.find(print(point));
    std::printf("point\t%zu\t%s", number, rows == first.end() ? "-" : joined(rows->second).c_str());
    print_costs(*costs);
    points.emplace(print(point), Point{number, *costs});
  }
  return points;
}

void account_named(const Model& model, const std::vector<Case>& cases) {
  for (const NamedSchedule& named : named_schedules()) {
    if (named.backend != ScheduleBackend::Gpu) continue;
    const auto schedule = schedule_by_name(model, named.name, Contract::Fast);
    const auto costs = schedule.ok() ? costs_of(model, *schedule, cases) : schedule.error();
    std::printf("named\t%s", std::string(named.name).c_str());
    print_costs(costs.ok() ? *costs : Costs(cases.size()));
  }
}

/// Prints what algorithm 1 chooses if the accounting's times are its measurements.
void choose(const Model& model, const std::vector<Case>& cases, const Points& points) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::size_t tried = 0;
    const auto chosen =
        scheduler::algorithm_1(cases[i].rows, model.num_features, [&](const GpuTemplatePoint& point) {
          ++tried;
          const auto found = points.find(print(point));
          return found == points.end() ? std::optional<double>() : found->second.costs[i];
        });
    if (!chosen.ok()) continue;
    std::printf("algorithm\t%u\t%s\t%zu\t%zu\n", cases[i].rows, std::string(cases[i].device->name).c_str(),
                points.at(print(*chosen)).number, tried);
  }
}

int run(int argc, char** argv) {
  const std::vector<Case> cases = argc == 5 ? cases_of(argv[2], argv[3]) : std::vector<Case>();
  const std::size_t every = argc == 5 ? number_of(argv[4]) : 0;
  if (cases.empty() || every == 0) {
    std::fprintf(stderr,
                 "usage: gpu_costs MODEL ROWS,... DEVICE,... EVERY; forestvm help inspect lists devices\n");
    return 2;
  }
  const auto model = load_model(argv[1]);
  if (!model.ok()) {
    std::fprintf(stderr, "gpu_costs: %s: %s\n", argv[1], model.error().text().c_str());
    return 1;
  }
  account_named(*model, cases);
  choose(*model, cases, account_points(*model, cases, every));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_costs: %s\n", error.what());
    return 70;
  }
}
