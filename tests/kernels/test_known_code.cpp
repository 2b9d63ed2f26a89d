// Codes that kernels know: which phases have them, and that these give the host's bits.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/emulator.hpp>
#include <forestvm/internal/formatted.hpp>

#include "kernels/link/link.hpp"
#include "support/small_models.hpp"
#include "vm/small_program.hpp"

namespace forestvm::kernels::test_known_code {
namespace {

struct Block {
  std::uint32_t rows, trees;            ///< rows of a block, and trees of a thread
  std::string more = "unrollWalk(t2)";  ///< further directives
  std::uint32_t threads = 0;  ///< threads of a row in a block of several that join; 0: blocks do not join
};

/// Returns the schedule that `gpu` makes for a block in which threads share the trees of a row.
std::string schedule(const Block& block, Contract contract) {
  if (block.threads != 0)
    return formatted(
        "tile(batch, b0, b1, {}); tile(tree, g0, g, {}); gpuDimension(g0, grid.y); tile(g, t0, t, {}); "
        "tile(t, t1, t2, {}); gpuDimension(t0, block.y); reorder(b0, g0, t0, b1, t1, t2); {}; "
        "gpuDimension(b0, grid.x); gpuDimension(b1, block.x); layout(g0, sparse); interleave(t2); cache(b0)",
        block.rows, block.trees * block.threads, block.trees, std::min(block.trees, 4u), block.more);
  return formatted(
      "tile(batch, b0, b1, {}); tile(tree, t0, t, {}); tile(t, t1, t2, {}); gpuDimension(t0, block.y); "
      "reorder(b0, t0, b1, t1, t2); {}; gpuDimension(b0, grid.x); gpuDimension(b1, block.x); "
      "layout(t0, sparse); interleave(t2); cache(b0); {}",
      block.rows, block.trees, std::min(block.trees, 4u),
      contract == Contract::Trainer ? "accumulate(leaves)" : "sharedReduce(t0)", block.more);
}

/// A model of trees of different depths and thresholds.
Model model_of(std::uint32_t trees, std::uint32_t features, std::uint32_t outputs) {
  std::vector<Tree> all;
  for (std::uint32_t t = 0; t < trees; ++t) {
    Tree tree = support::chain(1 + t % 6);
    for (Node& node : tree.nodes) {
      node.feature = (node.feature + t) % features;
      if (node.kind == NodeKind::Leaf) node.value = 0.1 * (t % 7) - node.value;
    }
    all.push_back(tree);
  }
  Model model = support::model_of(all, outputs);
  model.num_features = features;
  return model;
}

KnownCode known(const Program& program, std::uint32_t rows, OutputKind output) {
  const auto call = Linker(program).link({rows, rows, output}, {});
  EXPECT_TRUE(call.ok()) << (call.ok() ? "" : call.error().text());
  return call.ok() && call->phases.size() == 1 ? call->phases[0].known.code : KnownCode::None;
}

std::vector<float> answers(const Predictor& predictor, const std::vector<float>& rows, std::size_t features,
                           OutputKind output, std::size_t outputs) {
  const auto context = predictor.make_context();
  const RowBlock block{rows.data(), rows.size() / features, features};
  std::vector<float> found(block.count * outputs);
  const auto done = predictor.predict(*context, block, output, found.data());
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
  return found;
}

std::vector<float> some_rows(std::size_t rows, std::size_t features) {
  std::vector<float> values(rows * features);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
        i % 11 == 5 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(i % 29) * 0.25f - 1;
  return values;
}

/// Rows of 4 values are copied by 16 bytes, rows of 5 by 4. The last block of 19 rows is short, and so is the last
/// part of 13 trees.
TEST(KnownCode, GivesTheHostsBits) {
  for (const Contract contract : {Contract::Fast, Contract::Reproducible, Contract::Trainer})
    for (const std::uint32_t outputs : {1u, 3u})
      for (const std::uint32_t features : {4u, 5u, 70u})
        for (const Block& block :
             {Block{1, 4}, Block{2, 1}, Block{4, 2}, Block{8, 4}, Block{16, 8, ""}, Block{32, 5}})
          for (const std::size_t count : {1u, 3u, 19u, 65u}) {
            const Model model = model_of(13, features, outputs);
            const Program mapped = test::compiled(model, schedule(block, contract), contract);
            const KnownCode expected = contract == Contract::Fast      ? KnownCode::Sums
                                       : contract == Contract::Trainer ? KnownCode::Leaves
                                                                       : KnownCode::ExactSums;
            const auto gpu = emulator_backend(mapped);
            const auto host = host_backend(test::compiled(model, "", contract));
            ASSERT_TRUE(gpu.ok() && host.ok());
            const std::vector<float> rows = some_rows(count, features);
            for (const OutputKind output : {OutputKind::Raw, OutputKind::Value}) {
              EXPECT_EQ(known(mapped, static_cast<std::uint32_t>(count), output), expected)
                  << block.rows << " x " << block.trees;
              const auto of_gpu = answers(**gpu, rows, features, output, outputs);
              const auto of_host = answers(**host, rows, features, output, outputs);
              for (std::size_t i = 0; i < of_host.size(); ++i)
                if (contract == Contract::Fast)  // sums are in another order
                  EXPECT_NEAR(of_gpu[i], of_host[i], 1e-5) << block.rows << " x " << block.trees;
                else
                  EXPECT_EQ(of_gpu[i], of_host[i]) << block.rows << " x " << block.trees;
            }
          }
}

/// Known codes make scores where results lie: a pair's second number follows, and results that have no room for a row's
/// scores are made by the interpreter.
TEST(KnownCode, ResultsOfOtherWidthsHaveTheHostsBits) {
  Model pairs = model_of(13, 5, 1), numbers = model_of(13, 5, 3);
  numbers.transform = Transform::Argmax;
  for (const Contract contract : {Contract::Reproducible, Contract::Trainer})
    for (const Pair pair : {Pair::None, Pair::Complement, Pair::Negation})
      for (const Block& block : {Block{1, 4}, Block{8, 2}})
        for (const std::size_t count : {1u, 19u}) {
          pairs.pair = pair;
          const Model& model = pair == Pair::None ? numbers : pairs;
          const std::size_t width = pair == Pair::None ? 1 : 2;
          const Program mapped = test::compiled(model, schedule(block, contract), contract);
          EXPECT_NE(known(mapped, static_cast<std::uint32_t>(count), OutputKind::Value), KnownCode::None);
          const auto gpu = emulator_backend(mapped);
          const auto host = host_backend(test::compiled(model, "", contract));
          ASSERT_TRUE(gpu.ok() && host.ok());
          const std::vector<float> rows = some_rows(count, 5);
          EXPECT_EQ(answers(**gpu, rows, 5, OutputKind::Value, width),
                    answers(**host, rows, 5, OutputKind::Value, width))
              << static_cast<int>(pair) << " " << block.rows << " x " << block.trees;
        }
}

/// Blocks of 4 rows that share their trees join: each adds what its threads have made, and the last one what the blocks
/// have made. The last block of 13 trees has fewer than the others.
TEST(KnownCode, OfBlocksThatJoinGivesTheHostsBits) {
  for (const Contract contract : {Contract::Fast, Contract::Reproducible})
    for (const std::uint32_t outputs : {1u, 3u})
      for (const Block& block : {Block{1, 1, "unrollWalk(t2)", 2}, Block{4, 1, "unrollWalk(t2)", 4},
                                 Block{4, 2, "unrollWalk(t2)", 2}, Block{32, 4, "unrollWalk(t2)", 2}})
        for (const std::size_t count : {1u, 3u, 19u, 65u}) {
          const Model model = model_of(13, 5, outputs);
          const Program mapped = test::compiled(model, schedule(block, contract), contract);
          EXPECT_EQ(known(mapped, static_cast<std::uint32_t>(count), OutputKind::Raw),
                    contract == Contract::Fast ? KnownCode::JoinedSums : KnownCode::JoinedExactSums)
              << block.rows << " x " << block.trees;
          const auto host = host_backend(test::compiled(model, "", contract));
          const std::vector<float> rows = some_rows(count, 5);
          for (const std::uint64_t seed : {1u, 2u, 3u}) {
            const auto gpu = emulator_backend(mapped, {.seed = seed});
            ASSERT_TRUE(gpu.ok() && host.ok());
            for (const OutputKind output : {OutputKind::Raw, OutputKind::Value}) {
              const auto of_gpu = answers(**gpu, rows, 5, output, outputs);
              const auto of_host = answers(**host, rows, 5, output, outputs);
              for (std::size_t i = 0; i < of_host.size(); ++i)
                if (contract == Contract::Fast)  // sums are in another order
                  EXPECT_NEAR(of_gpu[i], of_host[i], 1e-5) << block.rows << " x " << block.trees;
                else
                  EXPECT_EQ(of_gpu[i], of_host[i]) << block.rows << " x " << block.trees;
            }
          }
        }
}

/// Codes that differ from the known ones are interpreted.
TEST(KnownCode, OthersAreInterpreted) {
  const Model model = model_of(12, 4, 1);
  const auto of = [&](const std::string& text, OutputKind output = OutputKind::Raw) {
    return known(test::compiled(model, text, Contract::Fast), 20, output);
  };
  const std::string text = schedule({4, 4}, Contract::Fast);
  EXPECT_EQ(of(text), KnownCode::Sums);
  EXPECT_EQ(of(text, OutputKind::Class), KnownCode::None);
  EXPECT_EQ(of(text, OutputKind::Leaf), KnownCode::None);
  const auto without = [&](const std::string& part, const std::string& instead) {
    std::string changed = text;
    changed.replace(changed.find(part), part.size(), instead);
    return of(changed);
  };
  EXPECT_EQ(without("cache(b0);", ""), KnownCode::None) << "rows are in global memory";
  EXPECT_EQ(without("layout(t0, sparse)", "layout(t0, sparse); encode(u8)"), KnownCode::None) << "codes";
  Model doubles = model;
  doubles.score_type = ScalarType::Float64;
  const Program wide = test::compiled(doubles, schedule({4, 4}, Contract::Trainer), Contract::Trainer);
  EXPECT_EQ(known(wide, 20, OutputKind::Raw), KnownCode::None) << "float64 leaves";
}

}  // namespace
}  // namespace forestvm::kernels::test_known_code
