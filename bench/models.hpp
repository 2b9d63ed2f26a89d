// The models that benchmarks run on: those in tests/data, two larger ones if the folder FORESTVM_ZOO has them, the
// files that the environment variable FORESTVM_BENCH_MODELS lists (separated by colons), and random forests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <forestvm/forestvm.hpp>

namespace forestvm::bench {

struct BenchModel {
  std::string name;
  std::string path;
};

std::vector<BenchModel> models();

/// Prints the error and ends the process: a benchmark has no caller to return it to.
[[noreturn]] void stop(const Error& error);

/// Returns the value of a result; an error ends the process.
template <class T>
T need(Result<T> result) {
  if (!result.ok()) stop(result.error());
  return std::move(result).value();
}

/// A compiled model and what a call of it needs.
struct Loaded {
  std::unique_ptr<Predictor> predictor;
  std::unique_ptr<Context> context;
  std::size_t features = 0;
  std::size_t outputs = 0;
};

Loaded load(const Model& model, const Schedule& schedule, unsigned threads);

/// Returns a regression model of random trees, one per round, with one output that starts from `base`.
Model model_of(std::vector<Tree> trees, std::uint32_t features, double base);

/// Returns `count` rows, drawn with a fixed seed, uniformly between the model's thresholds of each feature.
std::vector<float> rows_between_thresholds(const Model& model, std::size_t count);

}  // namespace forestvm::bench
