// Measures the time of a call without its walks: calls with one row and a forest without trees, under the usual
// schedules. The budget is 100 ns per call.
#include <benchmark/benchmark.h>

#include "bench/models.hpp"

namespace forestvm::bench {
namespace {

Model empty_forest() {
  Model model;
  model.format = "none";
  model.num_features = 8;
  model.base = {0.5};
  model.round_begins = {0};
  return model;
}

void dispatch(benchmark::State& state, const Schedule& schedule) {
  const Loaded loaded = load(empty_forest(), schedule, 1);
  const float row[8] = {};
  float out = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        loaded.predictor->predict(*loaded.context, RowBlock{row, 1, 8}, OutputKind::Raw, &out));
    benchmark::ClobberMemory();
  }
}

const bool registered = [] {
  benchmark::RegisterBenchmark("dispatch/auto", dispatch, automatic_schedule(empty_forest()));
  for (const NamedSchedule& named : named_schedules())
    if (named.backend == ScheduleBackend::Host)
      benchmark::RegisterBenchmark(("dispatch/" + std::string(named.name)).c_str(), dispatch,
                                   need(schedule_by_name(empty_forest(), named.name)));
  return true;
}();

}  // namespace
}  // namespace forestvm::bench
