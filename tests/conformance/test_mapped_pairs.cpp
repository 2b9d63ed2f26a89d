// Equal loops on the host and on a GPU: pairs of schedules, one with parallel loops, one with mapped loops.
// Every output of every model in the repository has the same bits in the host VM and in the emulator under
// the contracts that promise bits; where both add trees in parallel, their sums are added in the same order too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/emulator.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/internal/statistics.hpp>
#include <forestvm/load.hpp>

#include "random_forest.hpp"
#include "support/model_folders.hpp"
#include "support/nightly.hpp"
#include "support/small_models.hpp"
#include "support/test_name.hpp"

namespace forestvm::test::test_mapped_pairs {
namespace {

using support::ModelFile;

struct Pair {
  const char* name;
  const char* loops;  ///< directives that make the loops of both schedules
  const char* host;
  const char* gpu;
};

constexpr Pair kPairs[] = {
    {"rows", "tile(batch, b0, b1, 4); reorder(b0, b1, tree); layout(tree, array); unrollWalk(tree)",
     "parallel(b0)", "gpuDimension(b0, grid.x); gpuDimension(b1, block.x)"},
    {"trees in lockstep",
     "tile(batch, b0, b1, 8); tile(b1, b2, b3, 2); reorder(b0, b2, b3, tree); interleave(tree)",
     "parallel(b0)", "gpuDimension(b0, grid.x); gpuDimension(b2, block.x); cache(b0)"},
    {"trees in a block", "tile(batch, b0, b1, 4); tile(tree, t0, t1, 3); reorder(b0, t0, b1, t1)",
     "parallel(t0); vectorReduce(t0, 4)",
     "gpuDimension(b0, grid.x); gpuDimension(t0, block.x); cache(b0); sharedReduce(t0)"},
    {"trees one by one", "tile(batch, b0, b1, 2); reorder(b0, tree, b1); layout(tree, reorg)",
     "parallel(tree)", "gpuDimension(b0, grid.x); gpuDimension(tree, block.x)"},
    {"trees in a grid of blocks",
     "tile(batch, b0, b1, 8); tile(tree, t0, t, 20); tile(t, t1, t2, 5); reorder(b0, t0, t1, b1, t2)",
     "parallel(t0); parallel(t1)",
     "gpuDimension(b0, grid.x); gpuDimension(t0, grid.y); gpuDimension(t1, block.y)"},
    {"cached trees",
     "tile(batch, b0, b1, 8); tile(tree, t0, t, 12); tile(t, t1, t2, 3); reorder(b0, b1, t0, t1, t2); "
     "layout(t0, sparse)",
     "parallel(t1); cache(t0)",
     "gpuDimension(b0, grid.x); gpuDimension(b1, block.x); gpuDimension(t1, block.y); cache(t0); "
     "sharedReduce(t1)"},
    {"trees cached ahead",
     "tile(batch, b0, b1, 8); tile(tree, t0, t1, 5); reorder(b0, t0, b1, t1); layout(t0, array)",
     "parallel(b0); cache(t0)", "gpuDimension(b0, grid.x); gpuDimension(b1, block.x); cache(t0, 1)"},
    {"specialized trees",
     "tile(batch, b0, b1, 8); tile(tree, t0, t1, 20); reorder(b0, t0, b1, t1); specialize(t0); layout(t0, sparse)",
     "parallel(b0)", "gpuDimension(b0, grid.x); gpuDimension(b1, block.x)"},
    {"rank codes", "encode(u8); tile(batch, b0, b1, 8); reorder(b0, b1, tree)", "parallel(b0)",
     "gpuDimension(b0, grid.x); gpuDimension(b1, block.x)"},
    {"rank codes in level order",
     "tile(batch, b0, b1, 8); reorder(b0, b1, tree); layout(tree, array4); unrollWalk(tree); "
     "interleave(tree)",
     "parallel(b0)", "gpuDimension(b0, grid.x); gpuDimension(b1, block.x)"},
    {"rank codes in cached trees",
     "encode(u8); tile(batch, b0, b1, 8); tile(tree, t0, t1, 4); reorder(b0, t0, b1, t1); layout(t0, array); "
     "interleave(t1)",
     "parallel(b0); cache(t0)", "gpuDimension(b0, grid.x); gpuDimension(b1, block.x); cache(b0); cache(t0)"},
    {"rank codes that a block shares",
     "encode(u8); tile(batch, b0, b1, 4); tile(tree, t0, t1, 3); reorder(b0, t0, b1, t1); layout(t0, sparse)",
     "parallel(t0)", "gpuDimension(b0, grid.x); gpuDimension(t0, block.x); cache(b0); sharedReduce(t0)"},
    {"rank codes that blocks share",
     "encode(u8); tile(batch, b0, b1, 8); tile(tree, t0, t1, 20); reorder(b0, t0, b1, t1); layout(t0, array)",
     "parallel(t0)",
     "gpuDimension(b0, grid.x); gpuDimension(t0, grid.y); gpuDimension(b1, block.x); cache(b0)"},
};

template <class T>
std::string bytes(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

/// Returns the bytes of a prediction with the output's number of columns.
template <class T, class Call>
std::string bytes_of(const Predictor& predictor, OutputKind output, std::size_t rows, const Call& call) {
  std::vector<T> out(rows * output_width(predictor.program(), output));
  const Result<void> done = call(out.data());
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
  return bytes(out);
}

/// Returns everything that a predictor answers for the rows, output by output.
std::vector<std::string> everything(const Predictor& predictor, const RowBlock& rows) {
  const auto context = predictor.make_context();
  std::vector<std::string> all;
  for (const OutputKind output : {OutputKind::Raw, OutputKind::Value}) {
    all.push_back(bytes_of<float>(predictor, output, rows.count, [&](float* out) {
      return predictor.predict(*context, rows, output, out);
    }));
    all.push_back(bytes_of<double>(predictor, output, rows.count, [&](double* out) {
      return predictor.predict_wide(*context, rows, output, out);
    }));
  }
  if (output_width(predictor.program(), OutputKind::Class) != 0)
    all.push_back(bytes_of<std::int64_t>(predictor, OutputKind::Class, rows.count, [&](std::int64_t* out) {
      return predictor.predict_class(*context, rows, out);
    }));
  all.push_back(bytes_of<std::int32_t>(predictor, OutputKind::Leaf, rows.count, [&](std::int32_t* out) {
    return predictor.predict_leaf(*context, rows, out);
  }));
  return all;
}

/// Checks a pair. Layouts that cannot hold the model must be refused on both sides.
void check_pair(const Model& model, const RowBlock& rows, const Pair& pair, Contract contract) {
  CompileOptions options;
  options.contract = contract;
  const auto compiled = [&](const char* directives) {
    return compile(model, *parse_schedule(std::string(pair.loops) + "; " + directives), options);
  };
  const auto host = compiled(pair.host), gpu = compiled(pair.gpu);
  ASSERT_EQ(host.ok(), gpu.ok());
  if (!host.ok()) {
    EXPECT_EQ(host.error().message, gpu.error().message);
    EXPECT_EQ(host.error().code, ErrorCode::Refused);
    return;
  }
  // A loop over trees of one iteration is not parallel on the host, which then adds leaves in the model's order; on a
  // GPU it is mapped all the same, and its sums are added to the base score. Both say in warnings what they do.
  if (host->warnings.size() != gpu->warnings.size()) return;
  const auto on_host = host_backend(host->program, {.threads = 2});
  ASSERT_TRUE(on_host.ok()) << on_host.error().text();
  const std::vector<std::string> wanted = everything(**on_host, rows);
  for (const unsigned warp : {32u, 64u}) {
    // One of the two runs copies trees in bulk, the other does not.
    const auto on_gpu = emulator_backend(gpu->program, {.seed = warp / 32, .warp = warp});
    ASSERT_TRUE(on_gpu.ok()) << on_gpu.error().text();
    const std::vector<std::string> got = everything(**on_gpu, rows);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(got[i] == wanted[i]) << "output " << i << " with warps of " << warp;
  }
}

/// Checks all pairs for a model at night, and by day some, which depend on its name.
void check_pairs(const Model& model, const std::string& name, const RowBlock& rows) {
  for (const std::size_t number : support::sampled(std::size(kPairs), 4, name))
    for (const Contract contract : {Contract::Trainer, Contract::Reproducible}) {
      const Pair& pair = kPairs[number];
      SCOPED_TRACE(std::string(pair.name) + ", contract " + std::string(name_of(contract)));
      check_pair(model, rows, pair, contract);
    }
}

class MappedPairs : public testing::TestWithParam<ModelFile> {};

TEST_P(MappedPairs, HaveTheSameBits) {
  const auto model = load_model(GetParam().path.string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  const support::Rows read = support::read_rows(GetParam().path, *model);
  RowBlock rows{read.values.data(), std::min<std::size_t>(read.count, 11), model->num_features,
                RowType::Float64};
  rows.hashed = read.hashed;
  check_pairs(*model, GetParam().name, rows);
}

/// Sums of leaves that are too far apart for exact sums: each tree's leaf is kept, and added in the model's order.
TEST(MappedPairsOfLeavesFarApart, HaveTheSameBits) {
  std::vector<Tree> trees;
  for (int i = 0; i < 5; ++i)
    for (Tree tree : support::six_trees()) {
      for (Node& node : tree.nodes)
        if (node.kind == NodeKind::Leaf)
          node.value =
              i == 0 ? std::ldexp(node.value, -130) : static_cast<float>(node.value * (1.1 + 0.37 * i));
      trees.push_back(tree);
    }
  const Model model = support::model_of(trees, 2);
  ASSERT_EQ(reproducible_sums(model).kind, AccumulatorKind::PerTree);
  Dice dice(3);
  const std::vector<float> rows = random_rows(dice, model, 11);
  check_pairs(model, "far", {rows.data(), 11, model.num_features});
}

INSTANTIATE_TEST_SUITE_P(Repository, MappedPairs, testing::ValuesIn(support::repository_models()),
                         [](const auto& test) { return support::test_name(test.param.name); });

}  // namespace
}  // namespace forestvm::test::test_mapped_pairs
