// Measures the cost of each layout, and the gain of tiles, interleaving and unrolled walks, then whole schedules of the
// vector walkers. One thread predicts the raw scores of 512 rows in memory, tree by tree over blocks of 64 rows.
// Compare lines of one run only; `items_per_second` is rows per second.
#include <benchmark/benchmark.h>

#include "bench/models.hpp"

namespace forestvm::bench {
namespace {

constexpr std::size_t kRows = 512;

void walk(benchmark::State& state, const std::string& path, const std::string& text) {
  const Model model = need(load_model(path));
  const auto compiled = compile(model, need(parse_schedule(text)));
  if (!compiled.ok()) {  // some layouts would waste memory on some models and are refused
    state.SkipWithError(compiled.error().message.c_str());
    return;
  }
  const Loaded loaded = load(model, need(parse_schedule(text)), 1);
  const std::vector<float> rows = rows_between_thresholds(model, kRows);
  std::vector<float> out(kRows * loaded.outputs);
  for (auto _ : state)
    benchmark::DoNotOptimize(loaded.predictor->predict(
        *loaded.context, RowBlock{rows.data(), kRows, loaded.features}, OutputKind::Raw, out.data()));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kRows));
  state.counters["node_bytes"] = static_cast<double>(compiled->program.nodes().size());
}

const bool registered = [] {
  const std::string nest = "tile(batch, b0, b1, 64); reorder(b0, tree, b1); ";
  for (const BenchModel& model : models())
    for (const char* layout : {"array", "sparse8", "sparse16", "reorg", "sparse"})
      for (const char* tiles : {"1", "2", "4", "8"})
        for (const char* walks : {"", "interleave(b1); ", "interleave(b1); unrollWalk(b1); "}) {
          const bool tiled = std::string(tiles) != "1";
          const bool single = std::string(layout).find_first_of("0123456789") != std::string::npos;
          if (tiled ? single : std::string(layout) == "sparse") continue;  // sparse is sparse8 or sparse16
          const std::string text =
              nest + walks + "layout(tree, " + layout + "); tileTree(tree, " + tiles + ", uniform)";
          const std::string how = *walks == '\0' ? "one-by-one"
                                  : std::string(walks).find("unroll") == std::string::npos
                                      ? "lockstep"
                                      : "lockstep-unrolled";
          benchmark::RegisterBenchmark(
              ("walk/" + model.name + "/" + layout + "/tiles:" + tiles + "/" + how).c_str(), walk, model.path,
              text);
        }
  struct Whole {
    const char* name;
    const char* text;
  };
  for (const BenchModel& model : models())
    for (const Whole& whole :
         {Whole{"tables/blocks:64", "tile(batch, b0, b1, 64); reorder(b0, tree, b1); encode(u8)"},
          Whole{"tables/blocks:512", "tile(batch, b0, b1, 512); reorder(b0, tree, b1); encode(u8)"},
          Whole{"sparse8/rows-in-lanes",
                "tile(batch, b0, b1, 128); reorder(b0, tree, b1); interleave(b1); layout(tree, sparse8)"},
          Whole{"sparse8/trees-in-lanes", "tile(tree, t0, t1, 128); interleave(t1); layout(tree, sparse8)"},
          Whole{"sparse4/trees-in-lanes",
                "tile(tree, t0, t1, 128); interleave(t1); layout(tree, sparse4); encode(u8)"}})
      benchmark::RegisterBenchmark(("walk/" + model.name + "/" + whole.name).c_str(), walk, model.path,
                                   std::string(whole.text));
  return true;
}();

}  // namespace
}  // namespace forestvm::bench
