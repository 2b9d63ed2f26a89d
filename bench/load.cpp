// Measures the time until a model is ready: from a trainer's file to a Model, from a Model to a Schedule and a Program,
// and from a program file to a predictor, with and without contributions.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>

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

/// A program file that is removed in the end.
class ProgramFile {
 public:
  ProgramFile(const Model& model, const CompileOptions& options, const std::string& name)
      : path_((std::filesystem::temp_directory_path() /
               ("forestvm_bench_" + std::to_string(::getpid()) + name + ".fvm"))
                  .string()) {
    const Result<void> saved = need(compile(model, automatic_schedule(model), options)).program.save(path_);
    if (!saved.ok()) stop(saved.error());
  }
  ~ProgramFile() { std::remove(path_.c_str()); }
  ProgramFile(const ProgramFile&) = delete;
  ProgramFile& operator=(const ProgramFile&) = delete;

  std::unique_ptr<Predictor> load(Verification verification) const {
    return need(host_backend(need(Program::load(path_, verification))));
  }
  std::uintmax_t bytes() const { return std::filesystem::file_size(path_); }

 private:
  std::string path_;
};

void load_program(benchmark::State& state, const std::string& path, Verification verification) {
  const ProgramFile file(need(load_model(path)), {}, "");
  for (auto _ : state) benchmark::DoNotOptimize(file.load(verification));
  set_bytes(state, file.bytes());
}

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The processor time that contributions add to the loading of a program: a program with them and one without are
/// loaded in turns. Counts the splits and leaves that are loaded in a second.
void load_contributions(benchmark::State& state, const std::string& path) {
  const Model model = need(load_model(path));
  CompileOptions options;
  options.contributions = true;
  const ProgramFile with(model, options, "_with"), without(model, {}, "_without");
  std::size_t nodes = 0;
  for (const Tree& tree : model.trees) nodes += tree.nodes.size();
  const auto seconds = [](const ProgramFile& file) {
    const double begin = processor_seconds();
    benchmark::DoNotOptimize(file.load(Verification::Full));
    return processor_seconds() - begin;
  };
  // The difference is at least a nanosecond: for models of few trees it can be below the clock's resolution.
  for (auto _ : state) state.SetIterationTime(std::max(seconds(with) - seconds(without), 1e-9));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(nodes));
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
    benchmark::RegisterBenchmark(name("load_contributions").c_str(), load_contributions, model.path)
        ->Unit(benchmark::kMillisecond)
        ->UseManualTime();
  }
  return true;
}();

}  // namespace
}  // namespace forestvm::bench
