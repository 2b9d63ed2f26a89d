// Measures the cost of private copies of sums, and of each way to add them up. Trees run in parallel in blocks of 16,
// under each form of reduction, contract and type of sum, and serially for comparison. `items_per_second` is rows per
// second.
#include <benchmark/benchmark.h>

#include "bench/models.hpp"

namespace forestvm::bench {
namespace {

void reduce(benchmark::State& state, const std::string& path, const std::string& text, Contract contract) {
  const Model model = need(load_model(path));
  CompileOptions options;
  options.contract = contract;
  const auto batch = static_cast<std::size_t>(state.range(0));
  const Compiled compiled = need(compile(model, need(parse_schedule(text)), options));
  BackendOptions backend;
  backend.threads = static_cast<unsigned>(state.range(1));
  const auto predictor = need(host_backend(compiled.program, backend));
  const auto context = predictor->make_context();
  const std::vector<float> rows = rows_between_thresholds(model, batch);
  std::vector<float> out(batch * model.num_outputs);
  for (auto _ : state)
    benchmark::DoNotOptimize(predictor->predict(*context, RowBlock{rows.data(), batch, model.num_features},
                                                OutputKind::Raw, out.data()));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

const bool registered = [] {
  const std::string trees = "tile(tree, t0, t1, 16); reorder(t0, batch, t1); parallel(t0)";
  const std::vector<std::pair<std::string, std::pair<std::string, Contract>>> cases = {
      {"serial", {"reorder(tree, batch)", Contract::Fast}},
      {"copies", {trees, Contract::Fast}},
      {"copies-vector-4", {trees + "; vectorReduce(t0, 4)", Contract::Fast}},
      {"copies-vector-16", {trees + "; vectorReduce(t0, 16)", Contract::Fast}},
      {"copies-f64", {trees + "; accumulate(f64)", Contract::Fast}},
      {"copies-exact", {trees, Contract::Reproducible}},
      {"atomic", {trees + "; atomicReduce(t0)", Contract::Fast}},
      {"nested-in-place",
       {"tile(tree, t0, t1, 32); tile(t1, t2, t3, 16); reorder(t0, t2, batch, t3); parallel(t0); "
        "parallel(t2)",
        Contract::Fast}},
      {"ordered-per-tree", {"orderTrees(depth); reorder(tree, batch)", Contract::Trainer}},
      {"exact-serial", {"reorder(tree, batch)", Contract::Reproducible}}};
  for (const BenchModel& model : models())
    for (const auto& [name, how] : cases)
      benchmark::RegisterBenchmark(("reduce/" + model.name + "/" + name).c_str(), reduce, model.path,
                                   how.first, how.second)
          ->ArgNames({"batch", "threads"})
          ->ArgsProduct({{1, 512}, {1, 2}})
          ->UseRealTime();
  return true;
}();

}  // namespace
}  // namespace forestvm::bench
