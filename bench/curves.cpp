// Measures the time of a row as a forest or a call grows. One of trees, depth, features, rows per call and threads
// varies at a time; the others are as in kBase. bench/curves draws the results. Forests are random: complete down to
// the tenth level; below it one path in eight goes on, with a leaf on the other side of each split. Each feature has
// 255 thresholds, as training with histograms gives them.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/models.hpp"

namespace forestvm::bench {
namespace {

struct Point {
  std::uint32_t trees, depth, features;
  std::size_t rows;
  unsigned threads;
};

constexpr Point kBase{500, 6, 32, 4096, 1};
constexpr std::uint32_t kCompleteLevels = 10;

class TreeGrower {
 public:
  explicit TreeGrower(const Point& point) : point_(point), random_(point.trees * 31 + point.depth) {}

  Tree grow() {
    Tree tree;
    tree.nodes.resize(1);
    grow(tree, 0, 0);
    return tree;
  }

 private:
  std::uint32_t draw(std::uint32_t below) {
    return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(random_);
  }

  void grow(Tree& tree, std::size_t at, std::uint32_t depth) {
    const bool ends = depth >= point_.depth || (depth == kCompleteLevels && draw(8) != 0);
    if (ends) {
      tree.nodes[at].kind = NodeKind::Leaf;
      tree.nodes[at].value = static_cast<double>(draw(4096)) / 4096.0 - 0.5;
      return;
    }
    const std::size_t left = tree.nodes.size();
    tree.nodes.resize(left + 2);
    Node& node = tree.nodes[at];
    node.kind = NodeKind::Less;
    node.feature = draw(point_.features);
    node.threshold = static_cast<double>(draw(255) + 1) / 256.0;
    node.left = static_cast<std::int32_t>(left);
    node.right = static_cast<std::int32_t>(left + 1);
    const bool path = depth >= kCompleteLevels;
    grow(tree, left, path ? point_.depth : depth + 1);
    grow(tree, left + 1, depth + 1);
  }

  Point point_;
  std::mt19937 random_;
};

Model forest(const Point& point) {
  TreeGrower grower(point);
  std::vector<Tree> trees;
  for (std::uint32_t t = 0; t < point.trees; ++t) trees.push_back(grower.grow());
  return model_of(std::move(trees), point.features, 0.5);
}

void curve(benchmark::State& state, const Point& point) {
  const Model model = forest(point);
  const Loaded loaded = load(model, automatic_schedule(model), point.threads);
  std::mt19937 random(1);
  std::vector<float> rows(point.rows * point.features);
  for (float& value : rows) value = std::uniform_real_distribution<float>(0, 1)(random);
  std::vector<float> out(point.rows);
  for (auto _ : state)
    benchmark::DoNotOptimize(loaded.predictor->predict(
        *loaded.context, RowBlock{rows.data(), point.rows, point.features}, OutputKind::Raw, out.data()));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(point.rows));
}

void add(const char* axis, std::uint64_t at, const Point& point) {
  const std::string name = "curve/" + std::string(axis) + "/" + std::to_string(at) +
                           "/rows_a_call:" + std::to_string(point.rows) +
                           "/threads:" + std::to_string(point.threads);
  benchmark::RegisterBenchmark(name.c_str(), curve, point)->UseRealTime()->Unit(benchmark::kMicrosecond);
}

const bool registered = [] {
  for (const std::size_t rows : {std::size_t{1}, kBase.rows}) {
    Point point = kBase;
    point.rows = rows;
    for (point.trees = 10; point.trees < 26'000; point.trees *= 3) add("trees", point.trees, point);
    point.trees = 26'000;
    add("trees", point.trees, point);
    point.trees = kBase.trees;
    for (const std::uint32_t depth : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 10u, 12u, 16u, 20u, 30u}) {
      point.depth = depth;
      add("depth", depth, point);
    }
    point.depth = kBase.depth;
    for (point.features = 8; point.features <= 4096; point.features *= 2)
      add("features", point.features, point);
  }
  Point point = kBase;
  for (const unsigned threads : {1u, std::max(2u, std::thread::hardware_concurrency())}) {
    point.threads = threads;
    for (point.rows = 1; point.rows <= std::size_t{1} << 20; point.rows *= 4) add("rows", point.rows, point);
  }
  point.rows = std::size_t{1} << 16;
  for (point.threads = 1; point.threads <= std::max(2u, std::thread::hardware_concurrency()); ++point.threads)
    add("threads", point.threads, point);
  return true;
}();

}  // namespace
}  // namespace forestvm::bench
