// Reductions of many copies into few sums, each made by one warp: exact sums have the host's bits; float32
// sums have the bits of the expected order, which under contract trainer is the order of the copies.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/emulator.hpp>

#include "kernels/vendor/emulator/grid.hpp"
#include "support/small_models.hpp"
#include "vm/small_program.hpp"

namespace forestvm::kernels::test_reductions {
namespace {

constexpr std::size_t kRows = 5, kRowsOfBlock = 2;

std::vector<float> scores(const Predictor& predictor, Context& context) {
  std::vector<float> rows;
  for (std::size_t i = 0; i < kRows * 4; ++i) rows.push_back(static_cast<float>(i * 7 % 23) * 0.3f - 2);
  std::vector<float> raw(kRows * predictor.program().meta().num_outputs);
  const auto done = predictor.predict(context, RowBlock{rows.data(), kRows, 4}, OutputKind::Raw, raw.data());
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
  return raw;
}

std::vector<float> scores(const Result<std::unique_ptr<Predictor>>& predictor) {
  if (!predictor.ok()) {
    ADD_FAILURE() << predictor.error().text();
    return {};
  }
  const auto context = (*predictor)->make_context();
  return scores(**predictor, *context);
}

/// One thread for each tree, in a block of rows.
constexpr const char* kTreesInBlock =
    "tile(batch, b0, b1, 2); reorder(b0, tree, b1); gpuDimension(b0, grid.x); gpuDimension(tree, block.x)";

/// Returns a schedule that gives each third of the trees to blocks of its own, one thread for each tree. The sums of
/// the thirds are reduced in place.
std::string thirds(std::size_t trees) {
  return "tile(batch, b0, b1, 2); tile(tree, t0, t1, " + std::to_string((trees + 2) / 3) +
         "); reorder(b0, t0, t1, b1); gpuDimension(b0, grid.x); gpuDimension(t0, grid.y); "
         "gpuDimension(t1, block.x)";
}

/// Returns the leaves of trees with one leaf each. Their sum depends on the order.
std::vector<float> leaf_values(std::size_t trees) {
  std::vector<float> values;
  for (std::size_t t = 0; t < trees; ++t)
    values.push_back((t % 3 == 0 ? -1.0f : 1.0f) / static_cast<float>(t + 1) + (t % 7 == 0 ? 1e3f : 0));
  return values;
}

Model model_of_leaves(const std::vector<float>& values) {
  std::vector<Tree> trees;
  for (const float value : values) trees.push_back(support::leaf(static_cast<double>(value)));
  return support::model_of(trees);
}

/// Returns the sum as a warp with `lanes` active lanes makes it; a full warp has `size`.
float sum_of_lanes(const std::vector<float>& values, std::size_t lanes, std::size_t size) {
  std::vector<float> sums(lanes);
  for (std::size_t i = 0; i < values.size(); ++i) sums[i % lanes] += values[i];
  for (std::size_t by = size / 2; by != 0; by /= 2)
    for (std::size_t lane = 0; lane < std::min(by, lanes); ++lane)
      if (lane + by < lanes) sums[lane] += sums[lane + by];
  return sums[0];
}

TEST(Reductions, InAnyOrderAreMadeByWarps) {
  for (const unsigned warp : {32u, 64u})
    for (const std::size_t trees : {20u, 33u, 40u, 64u, 100u, 256u}) {
      SCOPED_TRACE(std::to_string(trees) + " trees, warps of " + std::to_string(warp));
      const std::vector<float> values = leaf_values(trees);
      const Program program = test::compiled(model_of_leaves(values), kTreesInBlock, Contract::Fast);
      std::vector<float> wanted;
      const std::size_t warps = (trees + warp - 1) / warp;
      for (std::size_t row = 0; row < kRows; ++row) {
        const std::size_t of_block = std::min(kRowsOfBlock, kRows - row / kRowsOfBlock * kRowsOfBlock);
        const std::size_t first = row % kRowsOfBlock % std::min(warps, of_block) * warp;
        wanted.push_back(sum_of_lanes(values, std::min<std::size_t>(warp, trees - first), warp) + 0.5f);
      }
      EXPECT_EQ(scores(emulator_backend(program, {.warp = warp})), wanted);
    }
}

TEST(Reductions, InTheTrainersOrderAreMadeByThreads) {
  const std::vector<float> values = leaf_values(256);
  float in_order = 0.5f;
  for (const float value : values) in_order += value;
  EXPECT_NE(in_order, sum_of_lanes(values, 32, 32) + 0.5f);
  const Program program = test::compiled(model_of_leaves(values), kTreesInBlock, Contract::Trainer);
  EXPECT_EQ(scores(emulator_backend(program)), std::vector<float>(kRows, in_order));
}

/// Threads keep the leaves of their trees, one tree or four at a time, and one of them adds those of a row: all trees
/// that follow each other, or those of an output, which are as many trees apart as there are outputs, or not.
TEST(Reductions, OfLeavesThatAreKeptAreInTheTrainersOrder) {
  for (const auto& [all, outputs, mixed] : {std::tuple{7u, 1u, false},
                                            {15u, 1u, false},
                                            {16u, 1u, false},
                                            {49u, 1u, false},
                                            {250u, 1u, false},
                                            {23u, 3u, false},
                                            {24u, 3u, false},
                                            {250u, 3u, false},
                                            {250u, 3u, true}}) {
    Model model = model_of_leaves(leaf_values(all));
    model.num_outputs = outputs;
    model.base.assign(outputs, 0.5);
    for (std::uint32_t t = 0; t < all; ++t) model.trees[t].output = (mixed ? t * 7 % 5 : t) % outputs;
    const auto wanted = scores(host_backend(test::compiled(model, "", Contract::Trainer)));
    for (const unsigned trees : {1u, 4u}) {
      SCOPED_TRACE(std::to_string(all) + " trees, " + std::to_string(outputs) + " outputs, " +
                   std::to_string(trees) + " trees of a thread");
      const std::string schedule = "tile(batch, b0, b1, 2); tile(tree, t0, t1, " + std::to_string(trees) +
                                   "); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
                                   "gpuDimension(t0, block.x); interleave(t1); accumulate(leaves)";
      EXPECT_EQ(scores(emulator_backend(test::compiled(model, schedule, Contract::Trainer))), wanted);
    }
  }
}

/// The last of the blocks that share the trees of a row adds what all have made, whichever it is, and in one call after
/// the other.
TEST(Reductions, OfBlocksAreMadeByTheLastOne) {
  constexpr std::uint32_t kOutputs = 3;
  Model model = model_of_leaves(leaf_values(100));
  model.num_outputs = kOutputs;
  model.base.assign(kOutputs, 0.5);
  for (std::size_t t = 0; t < model.trees.size(); ++t)
    model.trees[t].output = static_cast<std::uint32_t>(t % kOutputs);
  const std::string blocks = "tile(batch, b0, b1, 2); tile(tree, g0, g, 24); ";
  const std::string mapped = "gpuDimension(b0, grid.x); gpuDimension(g0, grid.y)";
  const std::string threads = blocks + "tile(g, t0, t1, 5); reorder(b0, g0, t0, b1, t1); " + mapped +
                              "; gpuDimension(t0, block.y); interleave(t1)";
  // Here no loop is mapped to threads, which write until their block comes to the end of its trees.
  const std::string rows = blocks + "reorder(b0, g0, b1, g); " + mapped;
  for (const auto& [schedule, contract] :
       {std::pair{threads + "; accumulate(leaves)", Contract::Trainer},
        std::pair{rows + "; accumulate(leaves)", Contract::Trainer},
        std::pair{threads, Contract::Reproducible}, std::pair{rows, Contract::Reproducible}}) {
    const auto wanted = scores(host_backend(test::compiled(model, "", contract)));
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const auto predictor = emulator_backend(test::compiled(model, schedule, contract), {seed});
      ASSERT_TRUE(predictor.ok()) << predictor.error().text();
      const auto context = (*predictor)->make_context();
      for (int call = 0; call < 3; ++call)
        EXPECT_EQ(scores(**predictor, *context), wanted) << "seed " << seed << ", call " << call << "\n"
                                                         << schedule;
    }
  }
}

/// The emulator's sums are right even without atomics; the count shows that each addition is atomic. A sum of
/// two words takes two atomics.
TEST(Reductions, ByAtomicsAddAtomically) {
  constexpr std::size_t kTrees = 20;
  const auto atomics = [](const Model& model, Contract contract) {
    const auto predictor = emulator_backend(
        test::compiled(model, std::string(kTreesInBlock) + "; atomicReduce(tree)", contract));
    const std::uint64_t before = emulator::atomics_counted();
    const auto found = scores(predictor);
    EXPECT_EQ(found, scores(host_backend(test::compiled(model, "", contract))));
    return emulator::atomics_counted() - before;
  };
  const Model simple = model_of_leaves(std::vector<float>(kTrees, 0.5f));
  EXPECT_EQ(atomics(simple, Contract::Fast), kRows * kTrees);
  EXPECT_EQ(atomics(simple, Contract::Reproducible), kRows * kTrees);
  const Model fine = support::small_model("fine");
  EXPECT_EQ(atomics(fine, Contract::Reproducible), 2 * kRows * fine.trees.size());
}

/// Two loops over trees are mapped to the same dimension, and one has fewer iterations than it has threads.
TEST(Reductions, ThreadsWithoutIterationsReduceNothing) {
  std::vector<float> values = leaf_values(40);
  for (float& value : values) value = std::round(value * 8);
  const Model model = model_of_leaves(values);
  const auto wanted = scores(host_backend(test::compiled(model, "", Contract::Reproducible)));
  const std::vector<std::string> loops = {
      "split(tree, ta, tb, 30); tile(ta, t0, t1, 3); tile(tb, t2, t3, 9)",
      "split(tree, ta, tb, 10); tile(ta, t0, t1, 9); tile(tb, t2, t3, 3)",
      // The third multiple of the step wraps to 2 in 32 bits, which is the number of a tree.
      "split(tree, ta, tb, 30); tile(ta, t0, t1, 3); tile(tb, t2, t3, 1431655766)",
  };
  for (const std::string& loop : loops)
    for (const std::string dimension : {"block.y", "grid.y"})
      for (const std::string sums : {"", "; atomicReduce(t2)"}) {
        const std::string schedule = "tile(batch, b0, b1, 2); reorder(b0, tree, b1); " + loop +
                                     "; gpuDimension(b0, grid.x); gpuDimension(t0, " + dimension +
                                     "); gpuDimension(t2, " + dimension + ")" + sums;
        const Program program = test::compiled(model, schedule, Contract::Reproducible);
        for (std::uint64_t seed = 1; seed <= 5; ++seed)
          EXPECT_EQ(scores(emulator_backend(program, {seed})), wanted) << schedule;
      }
}

TEST(Reductions, ExactOnesHaveTheHostsBits) {
  for (const char* const kind : {"two_outputs", "fine"}) {
    for (const std::size_t trees : {10u, 36u, 100u, 301u}) {
      Model model = support::small_model(kind);
      const std::vector<Tree> some = model.trees;
      model.trees.clear();
      while (model.trees.size() < trees) model.trees.push_back(some[model.trees.size() % some.size()]);
      model = support::model_of(model.trees, model.num_outputs);
      const auto wanted = scores(host_backend(test::compiled(model, "", Contract::Reproducible)));
      for (const std::string& schedule :
           {std::string(kTreesInBlock), std::string(kTreesInBlock) + "; sharedReduce(tree)", thirds(trees)}) {
        const Program program = test::compiled(model, schedule, Contract::Reproducible);
        for (const unsigned warp : {32u, 64u})
          for (std::uint64_t seed = 1; seed <= 3; ++seed)
            EXPECT_EQ(scores(emulator_backend(program, {seed, warp})), wanted)
                << kind << ", " << trees << " trees, warps of " << warp << "\n"
                << schedule;
      }
    }
  }
}

}  // namespace
}  // namespace forestvm::kernels::test_reductions
