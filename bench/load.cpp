// Measures the time until a model is ready: from a trainer's file to a Model, from a Model to a Schedule and a Program,
// and from a program file to a predictor.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "bench/models.hpp"
#include "scheduler/choose/walk_prediction.hpp"

namespace forestvm::bench {
namespace {

void set_bytes(benchmark::State& state, std::uintmax_t bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

void load_file(benchmark::State& state, const std::string& path) {
  for (auto _ : state) benchmark::DoNotOptimize(need(load_model(path)));
  set_bytes(state, std::filesystem::file_size(path));
}

/// The time of choosing a schedule without measurements: the facts about the model, and the choice by predicted costs.
void choose_schedule(benchmark::State& state, const std::string& path) {
  const Model model = need(load_model(path));
  for (auto _ : state) benchmark::DoNotOptimize(automatic_schedule(model));
}

void predict_costs(benchmark::State& state, const std::string& path) {
  const scheduler::ForestFacts facts = scheduler::facts_of(need(load_model(path)));
  for (auto _ : state) benchmark::DoNotOptimize(scheduler::plans_by_prediction(facts, {}));
}

void compile_model(benchmark::State& state, const std::string& path) {
  const Model model = need(load_model(path));
  const Schedule schedule = automatic_schedule(model);
  for (auto _ : state) benchmark::DoNotOptimize(need(compile(model, schedule)));
}

void load_program(benchmark::State& state, const std::string& path, Verification verification) {
  const Model model = need(load_model(path));
  const std::string file =
      (std::filesystem::temp_directory_path() / ("forestvm_bench_" + std::to_string(::getpid()) + ".fvm"))
          .string();
  const Result<void> saved = need(compile(model, automatic_schedule(model))).program.save(file);
  if (!saved.ok()) stop(saved.error());
  for (auto _ : state) benchmark::DoNotOptimize(need(host_backend(need(Program::load(file, verification)))));
  set_bytes(state, std::filesystem::file_size(file));
  std::remove(file.c_str());
}

const bool registered = [] {
  for (const BenchModel& model : models()) {
    const auto name = [&](const char* what) { return std::string(what) + "/" + model.name; };
    benchmark::RegisterBenchmark(name("load_model").c_str(), load_file, model.path)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(name("choose_schedule").c_str(), choose_schedule, model.path)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(name("predict_costs").c_str(), predict_costs, model.path)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(name("compile").c_str(), compile_model, model.path)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(name("load_program").c_str(), load_program, model.path, Verification::Full)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(name("load_program_trusted").c_str(), load_program, model.path,
                                 Verification::Trust)
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}();

}  // namespace
}  // namespace forestvm::bench
