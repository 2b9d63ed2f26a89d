// Outputs other than scores of programs mapped to a GPU launch, in the emulator: contributions, outputs of trees and
// stages, rounds that a call chooses, and margins of rows. The bits are those of the host, which other tests judge.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/emulator.hpp>
#include <forestvm/internal/reference.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/rounds.hpp>

#include "batched_predictions.hpp"
#include "explained_forest.hpp"
#include "random_forest.hpp"
#include "support/model_folders.hpp"
#include "support/nightly.hpp"
#include "support/same_bits.hpp"
#include "support/small_models.hpp"
#include "support/test_name.hpp"

namespace forestvm::test::test_mapped_kinds {
namespace {

/// Schedules that add leaves in each of the ways that a GPU has: a thread adds them in the model's order, threads and
/// blocks keep them, groups are walked in another order; rows are read as values and as codes.
const char* const kSchedules[] = {
    "gpu",
    "tile(batch, b0, b1, 32); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); layout(tree, sparse)",
    "tile(batch, b0, b1, 8); tile(tree, t0, t1, 3); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
    "gpuDimension(b1, block.x); gpuDimension(t0, grid.y); layout(t0, sparse); encode(u8); accumulate(leaves)",
    "orderTrees(depth); tile(batch, b0, b1, 16); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); "
    "layout(tree, sparse); cache(b0)"};

Result<Program> program_of(const Model& model, const std::string& schedule, const CompileOptions& options) {
  const bool named = schedule == "gpu" || schedule == "auto";
  FVM_ASSIGN(const Schedule chosen, named ? schedule_by_name(model, schedule) : parse_schedule(schedule));
  FVM_ASSIGN(const Compiled done, compile(model, chosen, options));
  return done.program;
}

/// Margins of rows, each a float32 number.
std::vector<double> some_margins(Dice& dice, std::size_t count) {
  std::vector<double> margins;
  for (std::size_t i = 0; i < count; ++i)
    margins.push_back(static_cast<double>(static_cast<float>(dice.below(2000)) / 64 - 15));
  return margins;
}

TEST(MappedContributions, HaveTheHostsBits) {
  std::size_t narrow = 0, wide = 0, with_margins = 0, with_rounds = 0;
  for (const std::uint64_t seed : support::sampled(400, 40, "mapped contributions")) {
    Drawn forest = drawn(seed);
    Model& model = forest.model;
    model.takes_margins = model.divisor == 1;
    ++(model.score_type == ScalarType::Float64 ? wide : narrow);
    Dice dice(seed);
    CompileOptions options;
    options.contributions = options.keeps_leaves = true;
    model.base_of_first_round = seed % 3 == 0;
    const auto host = host_backend(*program_of(model, "auto", options));
    const RowBlock rows{forest.rows.data(), forest.count, model.num_features};
    const bool has_rounds = model.divisor == 1 && round_count(model) != 0;
    const std::vector<double> expected = predicted(**host, rows, OutputKind::Contributions, {}, forest.count);
    const std::vector<double> margins = some_margins(dice, forest.count * model.num_outputs);
    CallOptions from_margins;
    from_margins.base_margin = {margins.data(), forest.count, model.num_outputs, true};
    for (const char* const schedule : kSchedules) {
      const std::string what = "seed " + std::to_string(seed) + ", " + schedule;
      const auto program = program_of(model, schedule, options);
      ASSERT_TRUE(program.ok()) << what << ": " << program.error().text();
      const auto emulated = emulator_backend(*program, {seed, dice.percent(50) ? 32u : 64u});
      ASSERT_TRUE(emulated.ok()) << what << ": " << emulated.error().text();
      for (const std::size_t batch : {forest.count, std::size_t{23}})
        support::expect_same_bits(predicted(**emulated, rows, OutputKind::Contributions, {}, batch), expected,
                                  what);
      if (HasFatalFailure()) return;
      if (model.takes_margins) {
        ++with_margins;
        support::expect_same_bits(
            predicted(**emulated, rows, OutputKind::Contributions, from_margins, forest.count),
            predicted(**host, rows, OutputKind::Contributions, from_margins, forest.count),
            what + ", margins");
      }
      if (has_rounds) {
        ++with_rounds;
        CallOptions some = dice.percent(50) && model.takes_margins ? from_margins : CallOptions();
        const auto begin = static_cast<std::uint32_t>(dice.below(round_count(model)));
        some.rounds = {begin, static_cast<std::uint32_t>(dice.from_to(begin + 1, round_count(model)))};
        support::expect_same_bits(
            predicted(**emulated, rows, OutputKind::Contributions, some, std::size_t{29}),
            predicted(**host, rows, OutputKind::Contributions, some, forest.count), what + ", rounds");
      }
      // The contributions of a row add up to its raw score.
      const std::vector<double> raw = predicted(**emulated, rows, OutputKind::Raw, {}, forest.count);
      std::vector<double> sums;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (i % (model.num_features + 1) == 0) sums.push_back(0);
        sums.back() += expected[i];
      }
      expect_near(sums, raw, 16 * tolerance_of(model), what);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_TRUE(narrow > 5 && wide > 5 && with_margins > 5 && with_rounds > 5)
      << narrow << " " << wide << " " << with_margins << " " << with_rounds;
}

TEST(MappedContributions, ComeInFloat32) {
  const Drawn forest = drawn(5);
  CompileOptions options;
  options.contributions = true;
  const auto emulated = emulator_backend(*program_of(forest.model, "gpu", options), {3});
  const RowBlock rows{forest.rows.data(), forest.count, forest.model.num_features};
  const std::vector<double> wide = predicted(**emulated, rows, OutputKind::Contributions, {}, forest.count);
  std::vector<float> out(wide.size());
  const auto context = (*emulated)->make_context();
  for (int call = 0; call < 3; ++call) {  // later calls replay a graph
    std::ranges::fill(out, 0.0f);
    ASSERT_TRUE((*emulated)->predict(*context, rows, OutputKind::Contributions, out.data()).ok());
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<float>(wide[i]));
  }
}

/// Expects that a program of the model in the emulator gives what one on the host does: for all outputs of trees,
/// stages and scores, with all rounds and some, and with margins.
void check_kinds(Model model, const RowBlock& rows, std::uint64_t seed) {
  Dice dice(seed);
  const bool has_rounds = (model.divisor == 1 || model.averaged) && round_count(model) != 0;
  model.takes_margins = model.divisor == 1 && !model.averaged;
  CompileOptions options;
  options.keeps_leaves = true;
  const auto on_host = program_of(model, "auto", options);
  ASSERT_TRUE(on_host.ok()) << on_host.error().text();
  const auto host = host_backend(*on_host);
  std::vector<OutputKind> kinds{OutputKind::Raw, OutputKind::Value, OutputKind::Trees};
  if (model.class_rule != ClassRule::None) kinds.push_back(OutputKind::Class);
  if (has_rounds) kinds.push_back(OutputKind::Staged);
  const std::vector<double> margins = some_margins(dice, rows.count * model.num_outputs);
  for (const char* const schedule : kSchedules) {
    const auto program = program_of(model, schedule, options);
    ASSERT_TRUE(program.ok()) << schedule << ": " << program.error().text();
    const auto emulated = emulator_backend(*program, {seed, dice.percent(50) ? 32u : 64u});
    ASSERT_TRUE(emulated.ok()) << schedule << ": " << emulated.error().text();
    std::vector<CallOptions> calls(1);
    if (has_rounds)
      for (int i = 0; i < 2; ++i) {
        const auto begin = static_cast<std::uint32_t>(dice.below(round_count(model)));
        calls.emplace_back().rounds = {
            begin, static_cast<std::uint32_t>(dice.from_to(begin + 1, round_count(model)))};
        calls.back().every = static_cast<std::uint32_t>(dice.from_to(1, 5));
      }
    for (const CallOptions& call : calls)
      for (const OutputKind kind : kinds)
        for (const bool from_margins : {false, true}) {
          if (from_margins && (!model.takes_margins || kind == OutputKind::Trees)) continue;
          CallOptions all = call;
          if (from_margins) all.base_margin = {margins.data(), rows.count, model.num_outputs, true};
          const std::string what =
              std::string(schedule) + ", output " + std::to_string(static_cast<int>(kind)) +
              (call.rounds ? ", rounds " + std::to_string(call.rounds->begin) + ":" +
                                 std::to_string(call.rounds->end) + " by " + std::to_string(call.every)
                           : "") +
              (from_margins ? ", margins" : "");
          const std::vector<double> expected = predicted(**host, rows, kind, all, rows.count);
          for (const std::size_t batch : {rows.count, std::size_t{5}})
            support::expect_same_bits(predicted(**emulated, rows, kind, all, batch), expected, what);
          if (testing::Test::HasFailure()) return;
        }
  }
}

TEST(MappedTrees, OfRandomForests) {
  for (const std::uint64_t seed : support::sampled(300, 30, "mapped trees")) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    ForestOptions options;
    options.float64 = 50;
    options.linear = 40;
    options.max_features = 40;
    Model model = random_forest(dice, options);
    model.base_of_first_round = seed % 3 == 0;
    const std::size_t count = dice.from_to(1, 40);
    const std::vector<float> rows = random_rows(dice, model, count);
    if (!program_of(model, "auto", {}).ok()) continue;  // models with a rare pair of rules are not lowered
    check_kinds(model, {rows.data(), count, model.num_features}, seed);
    if (HasFailure()) return;
  }
}

class MappedModels : public testing::TestWithParam<support::ModelFile> {};
INSTANTIATE_TEST_SUITE_P(Repository, MappedModels, testing::ValuesIn(support::repository_models()),
                         [](const auto& test) { return support::test_name(test.param.name); });

TEST_P(MappedModels, HaveTheHostsTreesAndStages) {
  const auto model = load_model(GetParam().path.string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  const support::Rows rows = support::read_rows(GetParam().path, *model);
  RowBlock block{rows.values.data(), std::min<std::size_t>(rows.count, 12), model->num_features,
                 RowType::Float64};
  block.hashed = rows.hashed;
  check_kinds(*model, block, 1);
}

std::string refusal(const Program& program, OutputKind output, const CallOptions& call) {
  const auto emulated = emulator_backend(program, {1});
  if (!emulated.ok()) return emulated.error().text();
  const std::vector<float> row(program.meta().num_features);
  std::vector<double> out(1000);
  const auto context = (*emulated)->make_context();
  const auto done = (*emulated)->predict_with(*context, RowBlock{row.data(), 1, row.size()}, output,
                                              ResultType::Float64, call, out.data());
  return done.ok() ? "" : done.error().text();
}

TEST(MappedKinds, AreRefusedByName) {
  Model model = support::model_of(support::six_trees());
  Dice dice(1);
  for (Tree& tree : model.trees) cover(dice, tree, 0, 1000);
  CompileOptions options;
  options.keeps_leaves = options.contributions = true;
  const Program program = *program_of(model, "gpu", options);
  CallOptions call;
  EXPECT_EQ(refusal(program, OutputKind::Contributions, call), "");
  call = {};
  const std::vector<std::uint32_t> features = {0};
  call.features = features;
  EXPECT_EQ(refusal(program, OutputKind::Contributions, call),
            "features of a call: are chosen on the host only");
  Model averaged = model;
  averaged.averaged = true;
  const Program forest = *program_of(averaged, "gpu", options);
  EXPECT_EQ(refusal(forest, OutputKind::Uncertainty, {}),
            "output uncertainty: is computed on the host, not on GPUs");
  call = {};
  call.early_stop = EarlyStop{};
  EXPECT_EQ(refusal(forest, OutputKind::Raw, call), "early stop: is for the host, not for GPUs");
  const auto of = [&](auto set) {
    CompileOptions wanted;
    set(wanted);
    const auto done = program_of(model, "gpu", wanted);
    return done.ok() ? "" : done.error().text();
  };
  EXPECT_NE(of([](CompileOptions& o) {
              o.contributions = o.interactions = true;
            }).find("interactions are computed on the host, not on GPUs"),
            std::string::npos);
  EXPECT_NE(of([](CompileOptions& o) {
              o.approx_contributions = true;
            }).find("approximate contributions are computed on the host, not on GPUs"),
            std::string::npos);
}

}  // namespace
}  // namespace forestvm::test::test_mapped_kinds
