// Trees that are copied to shared memory one iteration ahead of their use: the bits are the trainer's,
// whichever way a GPU copies and in whatever order its threads run.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>

#include "kernels/backend/predictor.hpp"
#include "kernels/emulator/runtime.hpp"
#include "support/small_models.hpp"
#include "vm/small_program.hpp"

namespace forestvm::kernels::test_copies {
namespace {

constexpr std::size_t kRows = 37;

/// Loops over trees and the directives that set them.
struct Nest {
  const char* name;
  std::string schedule;
  std::ptrdiff_t copies;  ///< number of copies in the phase that walks
  std::ptrdiff_t aheads;  ///< number of copies that go to two buffers
};

/// Returns nests for a model of 36 trees. Their last block of rows is short.
std::vector<Nest> nests() {
  const std::string blocks = "tile(batch, b0, b1, 8); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); ";
  const std::string rows_in_turn =
      "tile(batch, b0, b, 16); tile(b, b1, b2, 4); gpuDimension(b0, grid.x); gpuDimension(b2, block.x); ";
  return {
      {"whole tiles", blocks + "tile(tree, t0, t1, 12); reorder(b0, t0, b1, t1); cache(t0, 1)", 1, 1},
      {"short last tile", blocks + "tile(tree, t0, t1, 5); reorder(b0, t0, b1, t1); cache(t0, 1)", 1, 1},
      {"single trees", blocks + "reorder(b0, tree, b1); cache(tree, 1)", 1, 1},
      {"a tile", blocks + "tile(tree, t0, t1, 36); reorder(b0, t0, b1, t1); cache(t0, 1)", 1, 0},
      {"outside the threads", blocks + "tile(tree, t0, t1, 7); reorder(b0, b1, t0, t1); cache(t0, 1)", 1, 1},
      {"rows in turn", rows_in_turn + "tile(tree, t0, t1, 5); reorder(b0, b1, t0, b2, t1); cache(t0, 1)", 1,
       1},
      {"rows and trees",
       rows_in_turn + "tile(tree, t0, t1, 10); reorder(b0, b1, t0, b2, t1); cache(b1); cache(t0, 1)", 1, 1},
      {"tiles in tiles",
       blocks +
           "tile(tree, t0, t, 13); tile(t, t1, t2, 3); reorder(b0, t0, t1, b1, t2); cache(t0); cache(t1, 1)",
       2, 1},
      {"tiles in tiles, both ahead",
       blocks + "tile(tree, t0, t, 13); tile(t, t1, t2, 3); reorder(b0, t0, t1, b1, t2); cache(t0, 1); "
                "cache(t1, 1)",
       2, 2},
      {"a group each",
       blocks + "tile(tree, t0, t1, 12); reorder(b0, t0, b1, t1); specialize(t0); cache(t0, 1)", 3, 3},
      {"loops one after the other",
       blocks + "split(tree, ta, tb, 17); tile(ta, t0, t1, 4); tile(tb, t2, t3, 6); "
                "cache(t0, 1); cache(t2, 1)",
       2, 2},
  };
}

class Copies : public testing::Test {
 protected:
  Copies() {
    std::vector<Tree> trees;
    for (int i = 0; i < 6; ++i)
      for (const Tree& tree : support::six_trees()) trees.push_back(tree);
    for (const std::uint32_t outputs : {1u, 3u}) models_.push_back(support::model_of(trees, outputs));
    for (std::size_t i = 0; i < 4 * kRows; ++i) rows_.push_back(static_cast<float>(i * 7 % 23) * 0.3f - 2);
  }

  std::string bytes(const Predictor& predictor) const {
    const std::size_t outputs = predictor.program().meta().num_outputs;
    const RowBlock block{rows_.data(), kRows, 4};
    const auto context = predictor.make_context();
    std::vector<float> scores(kRows * outputs);
    std::vector<std::int32_t> leaves(kRows * 36);
    for (const auto& done : {predictor.predict(*context, block, OutputKind::Raw, scores.data()),
                             predictor.predict_leaf(*context, block, leaves.data())})
      if (!done.ok()) return done.error().text();
    const auto text = [](const auto& numbers) {
      return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4);
    };
    return text(scores) + text(leaves);
  }

  std::vector<Model> models_;
  std::vector<float> rows_;
};

TEST_F(Copies, GiveTheTrainersBits) {
  for (const Model& model : models_) {
    const std::string expected = bytes(**host_backend(test::compiled(model, "")));
    for (const Nest& nest : nests())
      for (const std::string layout : {"array", "reorg", "sparse8", "sparse16"}) {
        SCOPED_TRACE(std::string(nest.name) + ", " + layout);
        const Program program = test::compiled(model, nest.schedule + "; layout(tree, " + layout + ")");
        const auto linked = Linker(program).link({kRows, kRows, OutputKind::Raw}, {});
        ASSERT_TRUE(linked.ok() && linked->phases.size() == 1);
        const auto& copies = linked->phases[0].copies;
        EXPECT_EQ(std::count_if(copies.begin(), copies.end(),
                                [](const LaunchCopy& copy) { return copy.buffer_bytes != 0; }),
                  nest.copies);
        EXPECT_EQ(
            std::count_if(copies.begin(), copies.end(), [](const LaunchCopy& copy) { return copy.ahead; }),
            nest.aheads);
        for (const bool bulk : {false, true})
          for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            const auto predictor =
                make_predictor(program, make_emulator_runtime({.seed = seed, .bulk_copies = bulk}), "it");
            ASSERT_TRUE(predictor.ok());
            const std::string found = bytes(**predictor);
            EXPECT_TRUE(found == expected)
                << (bulk ? "bulk, " : "") << "seed " << seed << (found.size() < 300 ? ": " + found : "");
          }
      }
  }
}

}  // namespace
}  // namespace forestvm::kernels::test_copies
