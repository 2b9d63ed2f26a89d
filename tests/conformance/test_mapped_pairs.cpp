// Equal loops on the host and on a GPU: pairs of schedules, one with parallel loops, one with mapped loops.
// Every output of every model in the repository has the same bits in the host VM and in the emulator under
// the contracts that promise bits; sums of parallel trees are added in the same order too.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/emulator.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/load.hpp>

#include "support/model_folders.hpp"
#include "support/test_name.hpp"

namespace forestvm::test {
namespace {

namespace fs = std::filesystem;
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

class MappedPairs : public testing::TestWithParam<ModelFile> {
 protected:
  /// Checks a pair. Layouts that cannot hold the model must be refused on both sides.
  static void check(const Model& model, const RowBlock& rows, const Pair& pair, Contract contract) {
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
};

TEST_P(MappedPairs, HaveTheSameBits) {
  const auto model = load_model(GetParam().path.string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  const support::Answers answers = support::read_float_answers(GetParam().path, *model);
  const RowBlock rows{answers.rows.data(), std::min<std::size_t>(answers.count, 11), answers.features};
  for (const Pair& pair : kPairs)
    for (const Contract contract : {Contract::Trainer, Contract::Reproducible}) {
      SCOPED_TRACE(std::string(pair.name) + ", contract " + std::string(name_of(contract)));
      check(*model, rows, pair, contract);
    }
}

constexpr auto test_name = [](const auto& test) { return support::test_name(test.param.name); };
INSTANTIATE_TEST_SUITE_P(Real, MappedPairs, testing::ValuesIn(support::model_files(FORESTVM_TEST_DATA, "")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Lightgbm, MappedPairs,
                         testing::ValuesIn(support::model_files(fs::path(FORESTVM_TEST_DATA) / "lightgbm",
                                                                "")),
                         test_name);

}  // namespace
}  // namespace forestvm::test
