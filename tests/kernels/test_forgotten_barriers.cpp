// Kernels without one of their barriers: tests on the emulator must notice each barrier that matters. The
// emulator lets threads pass the forgotten barrier, and answers change; with all barriers in place they are
// right.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>

#include "kernels/backend/predictor.hpp"
#include "kernels/emulator/runtime.hpp"
#include "kernels/vendor/emulator/grid.hpp"
#include "support/small_models.hpp"
#include "vm/small_program.hpp"

namespace forestvm::kernels::test_forgotten_barriers {
namespace {

/// Compiles a program that caches rows and trees and reduces in shared memory.
Program program_of(const Model& model, const std::string& trees = "cache(t0)") {
  return test::compiled(
      model,
      "tile(batch, b0, b, 8); tile(b, b1, b2, 2); tile(tree, t0, t, 12); tile(t, t1, t2, 3); "
      "reorder(b0, b1, t0, t1, t2, b2); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); "
      "gpuDimension(t1, block.y); cache(b0); sharedReduce(t1); layout(t0, sparse); " +
          trees,
      Contract::Reproducible);
}

constexpr std::size_t kRows = 37;

/// Returns the bytes of the predictions, or the backend's error.
std::string outcome(const Result<std::unique_ptr<Predictor>>& predictor, const std::vector<float>& rows,
                    OutputKind output) {
  EXPECT_TRUE(predictor.ok());
  const auto context = (*predictor)->make_context();
  const RowBlock block{rows.data(), kRows, 4};
  const std::size_t width = output_width((*predictor)->program(), output);
  std::vector<float> scores(output == OutputKind::Raw ? kRows * width : 0);
  std::vector<std::int32_t> leaves(output == OutputKind::Leaf ? kRows * width : 0);
  const auto done = output == OutputKind::Raw ? (*predictor)->predict(*context, block, output, scores.data())
                                              : (*predictor)->predict_leaf(*context, block, leaves.data());
  if (!done.ok()) return done.error().text();
  const auto bytes = [](const auto& numbers) {
    return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4);
  };
  return bytes(scores) + bytes(leaves);
}

std::string outcome(const Program& program, const std::vector<float>& rows, OutputKind output,
                    const EmulatorSettings& settings) {
  return outcome(make_predictor(program, make_emulator_runtime(settings), "the emulator"), rows, output);
}

/// Returns the instructions whose barriers, when forgotten, change the outcome under one of ten orders.
std::set<Op> noticed(const Program& program, const std::vector<float>& rows, OutputKind output,
                     bool bulk_copies = false) {
  const auto linked = Linker(program).link({kRows, kRows, output}, {});
  EXPECT_TRUE(linked.ok() && linked->phases.size() == 1);
  const std::string right = outcome(program, rows, output, {});
  std::set<Op> ops;
  for (std::uint32_t pc = 0; pc < linked->phases[0].code.size(); ++pc)
    for (std::uint64_t seed = 1; seed <= 10; ++seed)
      if (outcome(program, rows, output, {.seed = seed, .forgotten = pc, .bulk_copies = bulk_copies}) !=
          right)
        ops.insert(linked->phases[0].code[pc].op);
  return ops;
}

Model many_trees() {
  std::vector<Tree> trees;
  for (int i = 0; i < 6; ++i)
    for (const Tree& tree : support::six_trees()) trees.push_back(tree);
  return support::model_of(trees, 2);
}

std::vector<float> some_rows() {
  std::vector<float> rows;
  for (std::size_t i = 0; i < 4 * kRows; ++i) rows.push_back(static_cast<float>(i * 7 % 23) * 0.3f - 2);
  return rows;
}

TEST(ForgottenBarriers, AreNoticed) {
  for (const std::string trees : {"cache(t0)", "cache(t0, 1)"}) {
    SCOPED_TRACE(trees);
    const Program program = program_of(many_trees(), trees);
    EXPECT_EQ(noticed(program, some_rows(), OutputKind::Raw),
              (std::set<Op>{Op::End, Op::CacheTrees, Op::ReduceDim}));
    EXPECT_EQ(noticed(program, some_rows(), OutputKind::Leaf), (std::set<Op>{Op::CacheTrees}));
  }
}

/// Compiles a program that caches only trees; its threads meet at no other barriers.
Program program_of_threads(const std::string& trees) {
  return test::compiled(many_trees(),
                        "tile(batch, b0, b1, 8); tile(tree, t0, t1, 7); reorder(b0, b1, t0, t1); "
                        "gpuDimension(b0, grid.x); gpuDimension(b1, block.x); layout(t0, sparse); " +
                            trees);
}

TEST(ForgottenBarriers, OfCachedTrees) {
  for (const std::string trees : {"cache(t0)", "cache(t0, 1)"})
    for (const bool bulk : {false, true}) {
      SCOPED_TRACE(trees + (bulk ? ", bulk copies" : ""));
      EXPECT_EQ(noticed(program_of_threads(trees), some_rows(), OutputKind::Leaf, bulk),
                (std::set<Op>{Op::CacheTrees}));
    }
}

TEST(ForgottenBarriers, AfterMakingThoseOfBulkCopies) {
  const Program program = program_of_threads("cache(t0, 1)");
  const std::string right = outcome(program, some_rows(), OutputKind::Leaf, {.bulk_copies = true});
  unsigned noticed = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    noticed += outcome(program, some_rows(), OutputKind::Leaf,
                       {.seed = seed, .forgotten = kMaxPhaseCode, .bulk_copies = true}) != right;
  EXPECT_GT(noticed, 0u);
}

/// Compiles a program that caches only rows.
Program program_of_rows() {
  return test::compiled(many_trees(),
                        "tile(batch, b0, b1, 8); tile(tree, t0, t1, 12); reorder(b0, t0, b1, t1); "
                        "gpuDimension(b0, grid.x); gpuDimension(t0, block.x); cache(b0)");
}

TEST(ForgottenBarriers, OfCachedRows) {
  EXPECT_EQ(noticed(program_of_rows(), some_rows(), OutputKind::Leaf), (std::set<Op>{Op::CacheRows}));
}

TEST(Barriers, InTheirPlacesGiveTheHostsAnswers) {
  const Program on_host = test::compiled(many_trees(), "", Contract::Reproducible);
  std::map<OutputKind, std::string> right;
  for (const OutputKind output : {OutputKind::Raw, OutputKind::Leaf})
    right[output] = outcome(host_backend(on_host), some_rows(), output);
  const auto check = [&](const Program& program, OutputKind output) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed)
      for (const unsigned warp : {32u, 64u})
        for (const bool bulk : {false, true})
          ASSERT_EQ(outcome(program, some_rows(), output, {.seed = seed, .warp = warp, .bulk_copies = bulk}),
                    right[output])
              << "seed " << seed << ", warps of " << warp << (bulk ? ", bulk copies" : "");
  };
  for (const std::string trees : {"cache(t0)", "cache(t0, 1)"}) {
    SCOPED_TRACE(trees);
    check(program_of(many_trees(), trees), OutputKind::Raw);
    check(program_of(many_trees(), trees), OutputKind::Leaf);
    check(program_of_threads(trees), OutputKind::Leaf);
  }
  check(program_of_rows(), OutputKind::Leaf);
}

}  // namespace
}  // namespace forestvm::kernels::test_forgotten_barriers
