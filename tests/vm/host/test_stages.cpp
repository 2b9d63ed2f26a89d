// Scores of stages against the raw scores of calls for the same rounds, in programs that write stages while they walk,
// and in those that add leaves which they keep. Outputs of many trees against the raw scores of their rounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/code_map.hpp>

#include "support/same_bits.hpp"
#include "support/small_models.hpp"
#include "support/targets_here.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_stages {
namespace {

constexpr std::size_t kRows = 300;

/// Returns a forest of 40 rounds, some of which have no trees.
Model rounds_model(std::uint32_t outputs, ScalarType type, bool base_last) {
  Model model = small_forest({.trees = 40 * outputs, .features = 5, .outputs = outputs, .depth = 4});
  model.transform = Transform::Identity;
  model.class_rule = ClassRule::None;
  model.class_labels.clear();
  model.score_type = type;
  model.takes_margins = true;
  model.base_last = base_last;
  for (std::uint32_t k = 0; k < outputs; ++k) model.base[k] = 0.3 + k;
  model.round_begins = {0};
  for (std::uint32_t t = outputs; t <= model.trees.size(); t += outputs) model.round_begins.push_back(t);
  model.round_begins[8] = model.round_begins[7] = model.round_begins[9];
  return model;
}

Program keeping(const Model& model, const std::string& schedule, Contract contract = Contract::Trainer) {
  CompileOptions options;
  options.contract = contract;
  options.keeps_leaves = true;
  return compiled(model, schedule, options);
}

/// Returns scores in the type of Number, each as float64. Memory for them held other numbers before.
template <class Number>
std::vector<double> scores_of(const Predictor& predictor, const RowBlock& rows, OutputKind output,
                              const CallOptions& options) {
  const auto context = predictor.make_context();
  std::vector<Number> out(rows.count * output_width(predictor.program(), output, options), Number{7});
  const ResultType type = sizeof(Number) == 8 ? ResultType::Float64 : ResultType::Float32;
  const auto done = predictor.predict_with(*context, rows, output, type, options, out.data());
  EXPECT_TRUE(done.ok()) << done.error().text();
  return {out.begin(), out.end()};
}

/// Checks the stages of a call against calls for raw scores of the rounds up to the end of each.
template <class Number>
void check_stages(const Predictor& predictor, const RowBlock& rows, CallOptions options) {
  const std::uint32_t outputs = predictor.program().meta().num_outputs;
  const Rounds rounds = options.rounds.value_or(
      Rounds{0, static_cast<std::uint32_t>(predictor.program().round_begins().size() - 1)});
  const std::vector<double> staged = scores_of<Number>(predictor, rows, OutputKind::Staged, options);
  const std::size_t stages = staged.size() / rows.count / outputs;
  ASSERT_EQ(stages, (rounds.end - rounds.begin + options.every - 1) / options.every);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const auto end = static_cast<std::uint32_t>(rounds.begin + (stage + 1) * options.every);
    options.rounds = Rounds{rounds.begin, std::min(end, rounds.end)};
    const std::vector<double> raw = scores_of<Number>(predictor, rows, OutputKind::Raw, options);
    std::vector<double> mine;
    for (std::size_t row = 0; row < rows.count; ++row)
      for (std::size_t k = 0; k < outputs; ++k) mine.push_back(staged[(row * stages + stage) * outputs + k]);
    support::expect_same_bits(mine, raw, "stage " + std::to_string(stage));
  }
}

/// The last two add the leaves of each stage; walks of the others write stages.
const char* const kSchedules[] = {"",
                                  "encode(u8)",
                                  "encode(u8); parallel(batch)",
                                  "tile(batch, b0, b1, 96); reorder(b0, tree, b1); parallel(b0); encode(u8)",
                                  "tile(tree, t0, t1, 7); reorder(t0, batch, t1); layout(tree, sparse)",
                                  "plan(8); layout(tree, array); plan(BATCH); encode(u8)",
                                  "orderTrees(depth)",
                                  "accumulate(leaves); encode(u8)"};

void check_schedules(std::uint32_t outputs, ScalarType type, bool base_last) {
  const Model model = rounds_model(outputs, type, base_last);
  const std::vector<float> values = small_rows(kRows, model.num_features);
  const std::vector<double> margins(kRows * outputs, 0.125);
  for (const char* const schedule : kSchedules)
    for (const std::string& target : support::targets_here()) {
      const Program program = keeping(model, schedule);
      const auto predictor = host_backend(program, {.threads = 2, .target = target});
      ASSERT_TRUE(predictor.ok()) << predictor.error().text();
      for (const std::size_t count : {std::size_t{1}, kRows})
        for (const std::uint32_t every : {2u, 1000u}) {
          SCOPED_TRACE(std::string(schedule) + ", " + target + ", " + std::to_string(outputs) + " outputs, " +
                       std::to_string(count) + " rows, every " + std::to_string(every));
          const RowBlock rows{values.data(), count, model.num_features};
          CallOptions options{.every = every};
          check_stages<float>(**predictor, rows, options);
          options.rounds = Rounds{7, 35};  // begins with rounds that have no trees
          options.base_margin = {margins.data(), count, outputs, true};
          check_stages<double>(**predictor, rows, options);
        }
    }
}

TEST(Stages, AreTheRawScoresOfTheirRounds) { check_schedules(1, ScalarType::Float32, false); }
TEST(Stages, OfEachRound) {
  const Model model = rounds_model(3, ScalarType::Float32, false);
  const std::vector<float> values = small_rows(kRows, model.num_features);
  const auto predictor = host_backend(keeping(model, "encode(u8)"));
  ASSERT_TRUE(predictor.ok()) << predictor.error().text();
  check_stages<float>(**predictor, {values.data(), kRows, model.num_features}, {.every = 1});
}
TEST(Stages, OfSeveralOutputs) {
  check_schedules(3, ScalarType::Float32, false);
  check_schedules(6, ScalarType::Float32, true);
}
TEST(Stages, OfFloat64Scores) {
  check_schedules(1, ScalarType::Float64, true);
  check_schedules(5, ScalarType::Float64, false);
}

/// Checks the outputs of trees against raw scores of calls for the rounds of one tree each. There are so many trees
/// that leaves are kept for some of them at a time.
void check_tree_outputs(ScalarType type, std::size_t alignment) {
  constexpr std::uint32_t kTrees = 1100;
  Model model = small_forest({.trees = kTrees, .features = 5, .outputs = 1, .depth = 3});
  model.transform = Transform::Identity;
  model.class_rule = ClassRule::None;
  model.class_labels.clear();
  model.score_type = type;
  model.base[0] = 0;
  model.round_begins.clear();
  for (std::uint32_t t = 0; t <= kTrees; ++t) model.round_begins.push_back(t);
  const std::vector<float> values = small_rows(kRows, model.num_features);
  const auto reference = host_backend(keeping(model, ""));
  ASSERT_TRUE(reference.ok()) << reference.error().text();
  std::vector<float> expected(kRows * kTrees);
  for (std::uint32_t t = 0; t < kTrees; ++t) {
    const std::vector<double> raw = scores_of<float>(**reference, {values.data(), kRows, model.num_features},
                                                     OutputKind::Raw, {.rounds = Rounds{t, t + 1}});
    for (std::size_t row = 0; row < kRows; ++row) expected[row * kTrees + t] = static_cast<float>(raw[row]);
  }
  for (const char* const schedule : {"encode(u8)", "encode(u8); parallel(batch)", "layout(tree, sparse)",
                                     "tile(batch, b0, b1, 40); reorder(b0, tree, b1); parallel(b0)"})
    for (const std::string& target : support::targets_here()) {
      const auto predictor = host_backend(keeping(model, schedule), {.threads = 2, .target = target});
      ASSERT_TRUE(predictor.ok()) << predictor.error().text();
      for (const std::size_t count : {1UL, 15UL, 16UL, 23UL, 69UL, kRows})
        for (const Rounds rounds :
             {Rounds{0, kTrees}, Rounds{3, 3 + 512 + 1}, Rounds{7, 20}, Rounds{5, 1099}}) {
          const auto context = (*predictor)->make_context();
          const std::size_t width = rounds.end - rounds.begin;
          std::vector<float> out(count * width + alignment, 7.0F);
          const auto done = (*predictor)
                                ->predict_with(*context, RowBlock{values.data(), count, model.num_features},
                                               OutputKind::Trees, ResultType::Float32, {.rounds = rounds},
                                               out.data() + alignment);
          ASSERT_TRUE(done.ok()) << done.error().text();
          for (std::size_t row = 0; row < count; ++row) {
            const float* const mine = out.data() + alignment + row * width;
            const float* const wanted = expected.data() + row * kTrees + rounds.begin;
            ASSERT_TRUE(std::equal(mine, mine + width, wanted))
                << schedule << ", " << target << ", row " << row << " of " << count << ", from tree "
                << rounds.begin;
          }
        }
    }
}

TEST(TreeOutputs, OfManyTrees) {
  check_tree_outputs(ScalarType::Float32, 0);
  check_tree_outputs(ScalarType::Float32, 3);
}
TEST(TreeOutputs, OfManyTreesWithFloat64Scores) { check_tree_outputs(ScalarType::Float64, 0); }

/// Exact sums are rounded once, but those of a program that keeps leaves are the trainer's.
TEST(Stages, HaveTheSameBitsUnderEveryContract) {
  const Model model = rounds_model(3, ScalarType::Float32, false);
  const std::vector<float> values = small_rows(kRows, model.num_features);
  const RowBlock rows{values.data(), kRows, model.num_features};
  std::vector<std::vector<double>> all;
  for (const Contract contract : {Contract::Trainer, Contract::Reproducible, Contract::Fast}) {
    const auto predictor = host_backend(keeping(model, "encode(u8)", contract));
    ASSERT_TRUE(predictor.ok()) << predictor.error().text();
    all.push_back(scores_of<float>(**predictor, rows, OutputKind::Staged, {.every = 4}));
  }
  support::expect_same_bits(all[1], all[0], "reproducible");
  support::expect_same_bits(all[2], all[0], "fast");
}

/// A program may be verified although its code for scores walks nothing.
TEST(Stages, OfCodeThatWalksNothingDoNotDependOnTheCallersMemory) {
  const Program program = keeping(rounds_model(3, ScalarType::Float32, false), "encode(u8)");
  ProgramParts parts = parts_of(program);
  std::size_t removed = 0;
  for (std::size_t pc = 0; pc < parts.code.size(); ++pc) {
    const std::uint32_t sums = code_map(program).insts[pc].walk_sums;
    if (sums == kNoAccumulator || is_per_tree(program.accumulators()[sums].kind)) continue;
    const auto walk = operands<Op::Walk>(parts.code[pc]);
    const std::uint32_t given[kMaxOperands] = {walk.acc_out, walk.rows};
    parts.code[pc] = pack(Op::AddBase, given);
    ++removed;
  }
  ASSERT_NE(removed, 0u);
  const auto damaged = build_program(parts);
  ASSERT_TRUE(damaged.ok()) << damaged.error().text();
  const auto predictor = host_backend(*damaged);
  ASSERT_TRUE(predictor.ok()) << predictor.error().text();
  const std::vector<float> values = small_rows(kRows, program.meta().num_features);
  const RowBlock rows{values.data(), kRows, program.meta().num_features};
  const std::vector<double> staged = scores_of<float>(**predictor, rows, OutputKind::Staged, {.every = 4});
  support::expect_same_bits(staged, std::vector<double>(staged.size()), "stages");
}

}  // namespace
}  // namespace forestvm::test::test_stages
