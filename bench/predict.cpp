// Measures the time of a row, for each model, schedule, batch and number of threads. Calls compute raw scores of rows
// in memory. Compare cells of one run only; `items_per_second` is rows per second.
#include <benchmark/benchmark.h>

#include "bench/models.hpp"

namespace forestvm::bench {
namespace {

void predict(benchmark::State& state, const std::string& path, const Schedule& schedule) {
  const Model model = need(load_model(path));
  const auto batch = static_cast<std::size_t>(state.range(0));
  const Loaded loaded = load(model, schedule, static_cast<unsigned>(state.range(1)));
  const std::vector<float> rows = rows_between_thresholds(model, batch);
  std::vector<float> out(batch * loaded.outputs);
  for (auto _ : state)
    benchmark::DoNotOptimize(loaded.predictor->predict(
        *loaded.context, RowBlock{rows.data(), batch, loaded.features}, OutputKind::Raw, out.data()));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

const bool registered = [] {
  for (const BenchModel& model : models())
    for (const char* name : {"auto", "default", "xgboost", "rows-8-unrolled"}) {
      const Schedule schedule = need(schedule_by_name(need(load_model(model.path)), name));
      benchmark::RegisterBenchmark(("predict/" + model.name + "/" + name).c_str(), predict, model.path,
                                   schedule)
          ->ArgNames({"batch", "threads"})
          ->ArgsProduct({{1, 64, 4096}, {1, 2}})
          ->UseRealTime();
    }
  return true;
}();

}  // namespace
}  // namespace forestvm::bench
