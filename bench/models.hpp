// The models that benchmarks run on: those of tests/data, two larger ones where the folder FORESTVM_ZOO has
// them, and what a benchmark draws at random.
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

/// Ends the process with a message: a benchmark has nobody to tell.
[[noreturn]] void stop(const Error& error);

/// The value; an error stops the process.
template <class T>
T need(Result<T> result) {
  if (!result.ok()) stop(result.error());
  return std::move(result).value();
}

/// A compiled model and what a call to it needs.
struct Loaded {
  std::unique_ptr<Predictor> predictor;
  std::unique_ptr<Context> context;
  std::size_t features = 0;
  std::size_t outputs = 0;
};

Loaded load(const Model& model, const Schedule& schedule, unsigned threads);

/// A regression by trees drawn at random, a round each: one output, which starts from `base`.
Model model_of(std::vector<Tree> trees, std::uint32_t features, double base);

/// `count` rows drawn uniformly between the thresholds that the model has for each feature, from a fixed
/// seed.
std::vector<float> rows_between_thresholds(const Model& model, std::size_t count);

}  // namespace forestvm::bench
