// Finds, loads and feeds the models that benchmarks run on.
#include "bench/models.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>
#include <utility>

namespace forestvm::bench {

std::vector<BenchModel> models() {
  const std::string data = FORESTVM_TEST_DATA, zoo = FORESTVM_ZOO;
  std::vector<BenchModel> found{{"breast_cancer", data + "/breast_cancer/model.json"},
                                {"digits", data + "/digits/model.ubj"}};
  if (!zoo.empty()) {
    found.push_back({"higgs", zoo + "/bench/higgs/model.json"});
    found.push_back({"abalone", zoo + "/bench/abalone/model.ubj"});
  }
  std::erase_if(found, [](const BenchModel& model) { return !std::filesystem::exists(model.path); });
  const char* const more = std::getenv("FORESTVM_BENCH_MODELS");
  std::istringstream paths(more == nullptr ? "" : more);
  for (std::string path; std::getline(paths, path, ':');)
    found.push_back({std::filesystem::path(path).filename().string(), path});
  return found;
}

void stop(const Error& error) {
  std::fprintf(stderr, "bench: %s\n", error.text().c_str());
  std::exit(1);
}

Loaded load(const Model& model, const Schedule& schedule, unsigned threads) {
  const Compiled compiled = need(compile(model, schedule));
  BackendOptions options;
  options.threads = threads;
  Loaded loaded;
  loaded.predictor = need(host_backend(compiled.program, options));
  loaded.context = loaded.predictor->make_context();
  loaded.features = model.num_features;
  loaded.outputs = model.num_outputs;
  return loaded;
}

Model model_of(std::vector<Tree> trees, std::uint32_t features, double base) {
  Model model;
  model.format = model.trainer = "drawn at random";
  model.objective = "reg:squarederror";
  model.num_features = features;
  model.num_outputs = 1;
  model.base = {base};
  for (std::uint32_t i = 0; i < features; ++i) model.feature_names.push_back("f" + std::to_string(i));
  for (std::uint32_t t = 0; t <= trees.size(); ++t) model.round_begins.push_back(t);
  model.trees = std::move(trees);
  return model;
}

std::vector<float> rows_between_thresholds(const Model& model, std::size_t count) {
  struct Span {
    double lowest = 0, highest = 0;
    bool used = false;
  };
  std::vector<Span> spans(model.num_features);
  for (const Tree& tree : model.trees)
    for (const Node& node : tree.nodes) {
      if (node.kind != NodeKind::Less && node.kind != NodeKind::LessEqual) continue;
      Span& span = spans[node.feature];
      span.lowest = span.used ? std::min(span.lowest, node.threshold) : node.threshold;
      span.highest = span.used ? std::max(span.highest, node.threshold) : node.threshold;
      span.used = true;
    }
  std::mt19937 random(1);
  std::vector<float> rows;
  rows.reserve(count * spans.size());
  for (std::size_t i = 0; i < count; ++i)
    for (const Span& span : spans) {
      const double margin = 0.1 * (span.highest - span.lowest) + 1e-3;
      rows.push_back(static_cast<float>(
          std::uniform_real_distribution<double>(span.lowest - margin, span.highest + margin)(random)));
    }
  return rows;
}

}  // namespace forestvm::bench
