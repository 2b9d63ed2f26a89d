// See tune_report.hpp. tune_page.cpp makes the page.
#include "cli/tune_report.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "cli/io/quote.hpp"

namespace forestvm::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the conditions for which times hold, as the report's JSON has them.
Json conditions(const TunedCalls& calls) {
  return {{"machine", calls.machine},
          {"threads", calls.threads},
          {"contract", name_of(calls.contract)},
          {"program", calls.program},
          {"batch", calls.batches}};
}

Json json_of(const TunedBatch& batch) {
  Json one = {{"batch", batch.batch},
              {"auto_us_per_row", batch.auto_us_per_row},
              {"separated", batch.is_separated},
              {"finalists", Json::array()}};
  for (const Finalist& finalist : batch.finalists)
    one["finalists"].push_back({{"name", finalist.name},
                                {"us_per_row", finalist.us_per_row},
                                {"turns", finalist.turns},
                                {"schedule", finalist.schedule}});
  return one;
}

Failure no_report(const std::string& what) { return refused("is not a report of forestvm tune: " + what); }

/// Reads a list of `count` times, one for each batch. Returns std::nullopt if `from` is anything else.
std::optional<std::vector<double>> times_of(const Json& from, std::size_t count) {
  if (!from.is_array() || from.size() != count) return std::nullopt;
  std::vector<double> times;
  for (const Json& time : from) {
    if (!time.is_number()) return std::nullopt;
    times.push_back(time.get<double>());
    if (!(times.back() >= 0) || !std::isfinite(times.back())) return std::nullopt;
  }
  return times;
}

}  // namespace

std::string tune_json(const TuneReport& report) {
  const Tuning& tuning = report.tuning;
  Json page = {{"model", report.calls.model},
               {"rows", report.calls.rows},
               {"conditions", conditions(report.calls)},
               {"strategy", kStrategyNames[static_cast<std::size_t>(report.strategy)]},
               {"budget_seconds", report.budget.count()},
               {"complete", tuning.is_complete()}};
  page["schedules"] = {
      {"measured", tuning.tried}, {"refused", tuning.refused}, {"planned", tuning.planned + 1}};
  page["batches"] = Json::array();
  for (const TunedBatch& batch : tuning.batches) page["batches"].push_back(json_of(batch));
  page["schedule"] = print(tuning.schedule);
  page["trials"] = Json::array();
  for (const Trial& trial : tuning.trials)
    page["trials"].push_back({{"point", trial.point},
                              {"name", scheduler::point_name(*report.calls.space, trial.point)},
                              {"us_per_row", trial.us_per_row},
                              {"of_auto", trial.of_auto}});
  return page.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<std::vector<Trial>> earlier_trials(const std::string& text, const TunedCalls& calls) {
  const Json page = Json::parse(text, nullptr, false);
  if (page.is_discarded()) return no_report("it is not JSON");
  if (!page.is_object() || !page.contains("conditions") || !page.contains("trials") ||
      !page["conditions"].is_object() || !page["trials"].is_array())
    return no_report("conditions or trials are missing");
  const Json& theirs = page["conditions"];
  const Json expected = conditions(calls);
  for (const auto& [name, mine] : expected.items()) {
    if (!theirs.contains(name)) return no_report(formatted("conditions.{} is missing", name));
    if (theirs[name] != mine)
      return refused(formatted("its times hold for other searches: {} is {}, here {}", name,
                               single_quoted(theirs[name].dump(), 200), single_quoted(mine.dump(), 200)));
  }
  std::vector<Trial> trials;
  std::set<std::size_t> points;
  for (const Json& one : page["trials"]) {
    const std::string place = formatted("trials[{}]", trials.size());
    if (!one.is_object() || !one.contains("point") || !one["point"].is_number_unsigned() ||
        !one.contains("name") || !one.contains("us_per_row") || !one.contains("of_auto"))
      return no_report(place + " lacks point, name, us_per_row or of_auto");
    const auto point = one["point"].get<std::uint64_t>();
    if (point >= calls.space->points || !points.insert(point).second)
      return no_report(formatted("{}.point is {}, which is no point of the space {} or comes twice", place,
                                 point, calls.space->name));
    if (one["name"] != scheduler::point_name(*calls.space, point))
      return no_report(
          formatted("{}.name is not the name of point {}, as in files of other releases", place, point));
    auto us_per_row = times_of(one["us_per_row"], calls.batches.size());
    auto of_auto = times_of(one["of_auto"], calls.batches.size());
    if (!us_per_row || !of_auto) return no_report(place + " lacks a time for each number of rows");
    trials.push_back({point, std::move(*us_per_row), std::move(*of_auto)});
  }
  return trials;
}

}  // namespace forestvm::cli
