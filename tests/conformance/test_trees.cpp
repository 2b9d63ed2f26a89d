// Outputs of single trees and of stages, and rounds that a call chooses, of every model in the repository: against the
// reference's leaves and sums, and against programs that were compiled for the rounds; the same bits under every
// schedule, in every batch, on every target.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/reference.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/rounds.hpp>

#include "batched_predictions.hpp"
#include "support/model_folders.hpp"
#include "support/same_bits.hpp"
#include "support/small_models.hpp"
#include "support/targets_here.hpp"
#include "support/test_name.hpp"

namespace forestvm::test::test_trees {
namespace {

/// The most rows of a model's that are tried.
constexpr std::size_t kMaxRows = 24;

const char* const kSchedules[] = {
    "auto", "tile(batch, b0, b1, 16); reorder(b0, tree, b1); parallel(b0); encode(u8)", "orderTrees(depth)"};

Result<Program> kept(const Model& model, const std::string& schedule) {
  FVM_ASSIGN(const Schedule chosen,
             schedule == "auto" ? schedule_by_name(model, schedule) : parse_schedule(schedule));
  CompileOptions options;
  options.keeps_leaves = true;
  FVM_ASSIGN(const Compiled done, compile(model, chosen, options));
  return done.program;
}

/// Returns the outputs of the leaf that the trainer calls `number`.
std::vector<double> outputs_of_leaf(const Model& model, const Tree& tree, std::int32_t number) {
  std::size_t n = 0;
  while (tree.nodes[n].kind != NodeKind::Leaf || leaf_number(tree, n) != number) ++n;
  const auto weighted = [&](double value) {
    return model.score_type == ScalarType::Float32
               ? static_cast<double>(tree.weight * static_cast<float>(value))
               : static_cast<double>(tree.weight) * value;
  };
  if (tree.leaf_width == 1) return {weighted(tree.nodes[n].value)};
  std::vector<double> outputs;
  for (std::size_t k = 0; k < tree.leaf_width; ++k)
    outputs.push_back(weighted(tree.leaf_vectors[std::size_t{tree.nodes[n].payload} * tree.leaf_width + k]));
  return outputs;
}

struct Case {
  Model model;
  support::Rows rows;
  RowBlock block;

  Reference reference_of(const Model& of) const {
    auto found = reference_predict(of, std::span(rows.values).first(block.count * block.stride), block.count,
                                   {.hashed_rows = rows.hashed});
    EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().text());
    return found.ok() ? *found : Reference{};
  }
};

/// Returns the outputs of trees whose leaves are linear functions of the row: the raw scores of models of one tree.
std::vector<double> outputs_of_linear_trees(const Case& c) {
  const std::size_t trees = c.model.trees.size(), outputs = c.model.num_outputs;
  std::vector<double> all(c.block.count * trees);
  for (std::size_t t = 0; t < trees; ++t) {
    Model one = c.model;
    one.trees = {c.model.trees[t]};
    one.round_begins = {0, 1};
    one.base.assign(outputs, 0);
    const std::vector<double> raw = c.reference_of(one).raw;
    for (std::size_t row = 0; row < c.block.count; ++row)
      all[row * trees + t] = raw[row * outputs + one.trees[0].output];
  }
  return all;
}

/// Returns the outputs of the leaves that the reference reaches.
std::vector<double> outputs_of_trees(const Case& c) {
  const Reference reference = c.reference_of(c.model);
  std::vector<double> expected;
  for (std::size_t row = 0; row < c.block.count; ++row)
    for (std::size_t t = 0; t < c.model.trees.size(); ++t) {
      const std::vector<double> outputs =
          outputs_of_leaf(c.model, c.model.trees[t], reference.leaf[row * reference.leaf_width + t]);
      expected.insert(expected.end(), outputs.begin(), outputs.end());
    }
  return expected;
}

void check_trees(const Case& c, const Predictor& predictor) {
  const std::vector<double> expected =
      has_linear_leaves(c.model) ? outputs_of_linear_trees(c) : outputs_of_trees(c);
  for (const std::size_t batch : {std::size_t{5}, c.block.count})
    support::expect_same_bits(predicted(predictor, c.block, OutputKind::Trees, {}, batch), expected, "trees");
}

void check_stages(const Case& c, const Predictor& predictor, std::uint32_t every) {
  const std::uint32_t rounds = round_count(c.model), stages = (rounds + every - 1) / every;
  const std::size_t outputs = c.model.num_outputs;
  CallOptions options;
  options.every = every;
  ASSERT_EQ(output_width(predictor.program(), OutputKind::Staged, options), stages * outputs);
  const std::vector<double> staged = predicted(predictor, c.block, OutputKind::Staged, options, 7);
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    Model part = c.model;
    ASSERT_TRUE(keep_rounds(part, {0, std::min(rounds, (stage + 1) * every)}).ok());
    std::vector<double> scores;
    for (std::size_t row = 0; row < c.block.count; ++row)
      for (std::size_t k = 0; k < outputs; ++k)
        scores.push_back(staged[(row * stages + stage) * outputs + k]);
    support::expect_same_bits(scores, c.reference_of(part).raw, "stage " + std::to_string(stage));
  }
}

void check_rounds(const Case& c, const Predictor& predictor, Rounds rounds, const char* schedule) {
  Model part = c.model;
  ASSERT_TRUE(keep_rounds(part, rounds).ok());
  const auto program = kept(part, schedule);
  ASSERT_TRUE(program.ok()) << program.error().text();
  const auto of_part = host_backend(*program);
  CallOptions options;
  options.rounds = rounds;
  std::vector<OutputKind> kinds{OutputKind::Raw, OutputKind::Value, OutputKind::Trees, OutputKind::Staged};
  if (c.model.class_rule != ClassRule::None) kinds.push_back(OutputKind::Class);
  for (const OutputKind kind : kinds)
    for (const std::size_t batch : {std::size_t{1}, c.block.count})
      support::expect_same_bits(predicted(predictor, c.block, kind, options, batch),
                                predicted(**of_part, c.block, kind, {}, c.block.count),
                                "rounds " + std::to_string(rounds.begin) + ":" + std::to_string(rounds.end) +
                                    ", output " + std::to_string(static_cast<int>(kind)));
}

/// Checks that calls of more rows than a block of leaves holds give each row what a call of few rows does.
void check_many_rows(const Case& c, const Predictor& predictor, bool has_rounds) {
  constexpr std::size_t kManyRows = 203;
  if (c.block.count == 0) return;
  std::vector<double> values;
  for (std::size_t row = 0; row < kManyRows; ++row) {
    const double* const from = c.rows.values.data() + row % c.block.count * c.block.stride;
    values.insert(values.end(), from, from + c.block.stride);
  }
  RowBlock many = c.block;
  many.data = values.data();
  many.count = kManyRows;
  const auto expect_rows = [&](OutputKind kind, const CallOptions& options) {
    const std::vector<double> few = predicted(predictor, c.block, kind, options, c.block.count);
    std::vector<double> expected;
    for (std::size_t i = 0; i < few.size() / c.block.count * kManyRows; ++i)
      expected.push_back(few[i % few.size()]);
    for (const std::size_t batch : {kManyRows, std::size_t{61}, std::size_t{29}})
      support::expect_same_bits(predicted(predictor, many, kind, options, batch), expected,
                                "batches of " + std::to_string(batch));
  };
  expect_rows(OutputKind::Raw, {});
  expect_rows(OutputKind::Trees, {});
  CallOptions options;
  options.every = 2;
  if (has_rounds) expect_rows(OutputKind::Staged, options);
  if (predictor.program().meta().early_stop == EarlyStopRule::None) return;
  options.early_stop = EarlyStop{.margin = 1, .every = 2};
  expect_rows(OutputKind::Raw, options);
}

class TreesOfModels : public testing::TestWithParam<support::ModelFile> {};
INSTANTIATE_TEST_SUITE_P(Repository, TreesOfModels, testing::ValuesIn(support::repository_models()),
                         [](const auto& test) { return support::test_name(test.param.name); });

TEST_P(TreesOfModels, AreTheReferences) {
  auto model = load_model(GetParam().path.string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  Case c{*model, support::read_rows(GetParam().path, *model), {}};
  const std::size_t width = c.model.num_features;
  c.block = {c.rows.values.data(), std::min(c.rows.count, kMaxRows), width, RowType::Float64};
  c.block.hashed = c.rows.hashed;
  const bool has_rounds = c.model.divisor == 1 || c.model.averaged;
  const std::uint32_t rounds = round_count(c.model);
  for (const char* schedule : kSchedules) {
    const auto program = kept(c.model, schedule);
    if (!program.ok() && std::string(schedule) != "auto") {
      EXPECT_NE(program.error().text().find("its tables have room for trees of"), std::string::npos)
          << program.error().text();
      continue;
    }
    ASSERT_TRUE(program.ok()) << program.error().text();
    for (const std::string& target : support::targets_here()) {
      SCOPED_TRACE(std::string(schedule) + ", " + target);
      const auto predictor = host_backend(*program, {.threads = 2, .target = target});
      ASSERT_TRUE(predictor.ok()) << predictor.error().text();
      check_trees(c, **predictor);
      check_many_rows(c, **predictor, has_rounds && rounds != 0);
      if (!has_rounds || rounds == 0) continue;
      check_stages(c, **predictor, std::max(1u, rounds / 3));
      check_rounds(c, **predictor, {0, (rounds + 1) / 2}, schedule);
      check_rounds(c, **predictor, {rounds - 1, rounds}, schedule);
    }
  }
}

/// A model of six rounds of one tree: f0 < 0.5 ? 1 : 2, and so on.
Model six_rounds() {
  std::vector<Tree> trees;
  for (int i = 0; i < 6; ++i)
    trees.push_back(
        support::model_of({support::split(0, 0.5, support::leaf(i), support::leaf(2 * i))}).trees[0]);
  Model model = support::model_of({});
  model.trees = std::move(trees);
  model.round_begins = {0, 1, 2, 3, 4, 5, 6};
  return model;
}

/// The outputs of more trees than are walked before outputs are written, for more rows than walkers take together. Rows
/// of outputs begin anywhere in a cache line.
TEST(TreesAndStages, OfManyTreesAndRows) {
  constexpr std::uint32_t kTrees = 1211, kRows = 1100;
  const auto threshold = [](std::uint32_t t) { return (t * 37) % 101 + 0.5; };
  std::vector<Tree> trees;
  for (std::uint32_t t = 0; t < kTrees; ++t)
    trees.push_back(support::split(0, threshold(t), support::leaf(2 * t), support::leaf(2 * t + 1)));
  const Model model = support::model_of(std::move(trees));
  std::vector<float> values(kRows * model.num_features);
  const auto value = [&](std::uint32_t row) -> float& { return values[row * model.num_features]; };
  for (std::uint32_t row = 0; row < kRows; ++row) value(row) = static_cast<float>(row * 53 % 103);
  const Program program = *kept(model, "auto");
  CallOptions some;
  some.rounds = Rounds{19, 1060};
  CallOptions few;
  few.rounds = Rounds{520, 539};
  for (const std::string& target : support::targets_here())
    for (const CallOptions& options : {CallOptions{}, some, few})
      for (const unsigned threads : {1U, 2U}) {
        const auto predictor = host_backend(program, {.threads = threads, .target = target});
        ASSERT_TRUE(predictor.ok()) << predictor.error().text();
        const Rounds rounds = options.rounds.value_or(Rounds{0, kTrees});
        const std::size_t width = rounds.end - rounds.begin;
        for (const std::uint32_t count : {17U, 500U, kRows}) {
          std::vector<float> out(count * width + 5, -1);
          const RowBlock rows{values.data(), count, model.num_features};
          const auto context = (*predictor)->make_context();
          const auto done = (*predictor)
                                ->predict_with(*context, rows, OutputKind::Trees, ResultType::Float32,
                                               options, out.data() + 3);
          ASSERT_TRUE(done.ok()) << done.error().text();
          std::vector<float> expected(out.size(), -1);
          for (std::uint32_t row = 0; row < count; ++row)
            for (std::uint32_t t = rounds.begin; t < rounds.end; ++t)
              expected[3 + row * width + t - rounds.begin] =
                  static_cast<float>(2 * t + (static_cast<double>(value(row)) < threshold(t) ? 0 : 1));
          EXPECT_TRUE(out == expected)
              << target << ", " << threads << " threads, " << count << " rows, " << width << " trees";
        }
      }
}

std::string error_of(const Program& program, OutputKind output, const CallOptions& options) {
  const auto done = check_call(program, output, options);
  return done.ok() ? "" : done.error().text();
}

void expect_error(const std::string& text, const std::string& expected) {
  EXPECT_NE(text.find(expected), std::string::npos) << text;
}

TEST(TreesAndStages, AreRefusedByName) {
  const Model model = six_rounds();
  const Program plain = compile(model, *parse_schedule(""))->program, keeps = *kept(model, "auto");
  expect_error(error_of(plain, OutputKind::Trees, {}),
               "output trees: the program does not keep each tree's leaf");
  expect_error(error_of(plain, OutputKind::Staged, {}), "compile the model with --with staged");
  CallOptions options;
  options.every = 0;
  expect_error(error_of(keeps, OutputKind::Staged, options), "stages: after every 0 rounds");
  options.every = 1;
  for (const Rounds wrong : {Rounds{0, 0}, Rounds{3, 2}, Rounds{0, 7}, Rounds{6, 7}}) {
    options.rounds = wrong;
    for (const OutputKind kind : {OutputKind::Raw, OutputKind::Trees, OutputKind::Staged}) {
      expect_error(error_of(keeps, kind, options), "expected A:B with A < B, and B at most 6");
      if (kind != OutputKind::Raw) {
        EXPECT_EQ(output_width(keeps, kind, options), 0u);
      }
    }
  }
  options.rounds = Rounds{1, 3};
  EXPECT_EQ(error_of(keeps, OutputKind::Raw, options), "");
  EXPECT_EQ(output_width(keeps, OutputKind::Trees, options), 2u);
  expect_error(error_of(keeps, OutputKind::Leaf, options),
               "rounds: the leaf numbers of a call are of all rounds");
  expect_error(error_of(plain, OutputKind::Raw, options), "compile the model with --with rounds");
  CallOptions early;
  early.early_stop = EarlyStop{};
  expect_error(error_of(keeps, OutputKind::Trees, early), "outputs of trees and stages are of all trees");
  Model divided = model;
  divided.divisor = 2;
  const Program isolation = *kept(divided, "auto");
  EXPECT_EQ(error_of(isolation, OutputKind::Trees, {}), "");
  expect_error(error_of(isolation, OutputKind::Staged, {}), "the model's trees are not rounds of boosting");
  expect_error(error_of(isolation, OutputKind::Value, options),
               "the model's trees are not rounds of boosting");
}

TEST(TreesAndStages, OfAModelWithoutTrees) {
  Model model = six_rounds();
  model.trees.clear();
  model.round_begins = {0};
  const auto predictor = host_backend(*kept(model, "auto"));
  const std::vector<double> row(model.num_features);
  const RowBlock block{row.data(), 1, row.size(), RowType::Float64};
  EXPECT_TRUE(predicted(**predictor, block, OutputKind::Trees, {}, 1).empty());
  EXPECT_TRUE(predicted(**predictor, block, OutputKind::Staged, {}, 1).empty());
}

}  // namespace
}  // namespace forestvm::test::test_trees
