// Outputs other than scores of programs mapped to a GPU launch, in the emulator: contributions, outputs of trees and
// stages, rounds that a call chooses, and margins of rows. The bits are those of the host, which other tests judge.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/background.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/emulator.hpp>
#include <forestvm/internal/reference.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/rounds.hpp>
#include <forestvm/samples.hpp>

#include "batched_predictions.hpp"
#include "explained_forest.hpp"
#include "random_forest.hpp"
#include "support/model_folders.hpp"
#include "support/nightly.hpp"
#include "support/npy.hpp"
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

/// Returns calls for contributions or interactions of `count` rows: a plain one, one from `margins` if the model takes
/// them, and, if `has_rounds`, one of some rounds.
std::vector<CallOptions> explaining_calls(const Model& model, const std::vector<double>& margins,
                                          std::size_t count, bool has_rounds, Dice& dice) {
  std::vector<CallOptions> calls(1);
  if (model.takes_margins)
    calls.emplace_back().base_margin = {margins.data(), count, model.num_outputs, true};
  if (has_rounds) {
    const auto begin = static_cast<std::uint32_t>(dice.below(round_count(model)));
    calls.emplace_back().rounds = {begin,
                                   static_cast<std::uint32_t>(dice.from_to(begin + 1, round_count(model)))};
  }
  return calls;
}

/// Expects that a program of the model in the emulator gives what one on the host does, in calls of `rows` and in
/// batches of 11 of them. The seed chooses its schedule.
void check_explained(const Model& model, const Predictor& host, const CompileOptions& options,
                     const RowBlock& rows, std::initializer_list<OutputKind> kinds,
                     const std::vector<CallOptions>& calls, std::uint64_t seed, Dice& dice) {
  const std::string schedule = kSchedules[seed % std::size(kSchedules)];
  const std::string what = "seed " + std::to_string(seed) + ", " + schedule;
  const auto program = program_of(model, schedule, options);
  ASSERT_TRUE(program.ok()) << what << ": " << program.error().text();
  const auto emulated = emulator_backend(*program, {seed, dice.percent(50) ? 32u : 64u});
  ASSERT_TRUE(emulated.ok()) << what << ": " << emulated.error().text();
  for (const CallOptions& call : calls)
    for (const OutputKind kind : kinds)
      for (const std::size_t batch : {rows.count, std::size_t{11}})
        support::expect_same_bits(predicted(**emulated, rows, kind, call, batch),
                                  predicted(host, rows, kind, call, rows.count), what);
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

TEST(MappedInteractions, HaveTheHostsBits) {
  std::size_t narrow = 0, wide = 0, with_margins = 0, with_rounds = 0;
  for (const std::uint64_t seed : support::sampled(300, 30, "mapped interactions")) {
    Drawn forest = drawn(seed, 12);
    Model& model = forest.model;
    const std::size_t count = std::min<std::size_t>(forest.count, 40);
    const RowBlock rows{forest.rows.data(), count, model.num_features};
    model.takes_margins = model.divisor == 1;
    ++(model.score_type == ScalarType::Float64 ? wide : narrow);
    Dice dice(seed);
    CompileOptions options;
    options.contributions = options.interactions = true;
    options.keeps_leaves = dice.percent(50);
    const auto host = host_backend(*program_of(model, "auto", options));
    const std::vector<double> margins = some_margins(dice, count * model.num_outputs);
    const bool has_rounds = options.keeps_leaves && model.divisor == 1 && round_count(model) != 0;
    with_margins += model.takes_margins;
    with_rounds += has_rounds;
    check_explained(model, **host, options, rows, {OutputKind::Interactions, OutputKind::Contributions},
                    explaining_calls(model, margins, count, has_rounds, dice), seed, dice);
    if (HasFailure()) return;
  }
  EXPECT_TRUE(narrow > 5 && wide > 5 && with_margins > 5 && with_rounds > 5)
      << narrow << " " << wide << " " << with_margins << " " << with_rounds;
}

TEST(MappedContributions, AgainstABackground) {
  std::size_t with_margins = 0, looked_up = 0, walked = 0;
  for (const std::uint64_t seed : support::sampled(300, 30, "mapped backgrounds")) {
    Drawn forest = drawn(seed, 15);
    Model& model = forest.model;
    model.takes_margins = model.divisor == 1;
    const std::size_t count = std::min<std::size_t>(forest.count, 40);
    const RowBlock rows{forest.rows.data(), count, model.num_features};
    Dice dice(seed);
    const std::vector<float> drawn_rows = random_rows(dice, model, dice.from_to(1, 30));
    const std::vector<double> others(drawn_rows.begin(), drawn_rows.end());
    const auto background = Background::make(model, others, model.num_features);
    ASSERT_TRUE(background.ok()) << background.error().text();
    CompileOptions options;
    options.contributions = true;
    options.keeps_leaves = dice.percent(50);
    options.background = std::make_shared<const Background>(*background);
    const auto on_host = program_of(model, "auto", options);
    ASSERT_TRUE(on_host.ok()) << on_host.error().text();
    looked_up += !on_host->pattern_leaves().empty();
    walked += !on_host->explained_trees().empty();
    const auto host = host_backend(*on_host);
    const std::vector<double> margins = some_margins(dice, count * model.num_outputs);
    with_margins += model.takes_margins;
    check_explained(model, **host, options, rows, {OutputKind::Contributions},
                    explaining_calls(model, margins, count, false, dice), seed, dice);
    if (HasFailure()) return;
  }
  EXPECT_TRUE(with_margins > 5 && looked_up > 5 && walked > 5)
      << with_margins << " " << looked_up << " " << walked;
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

/// Expects that programs for GPUs, in the emulator, give approximate contributions as one on the host does, also from
/// margins. Returns the number of programs; 0 if the model has no such contributions.
std::size_t check_approximate(Model model, const RowBlock& rows, std::uint64_t seed) {
  model.takes_margins = model.divisor == 1 && !model.averaged;
  Dice dice(seed);
  CompileOptions options;
  options.approx_contributions = true;
  options.contributions = options.keeps_leaves = seed % 2 == 0;
  const auto on_host = program_of(model, "auto", options);
  if (!on_host.ok()) return 0;
  const auto host = host_backend(*on_host);
  const std::vector<double> margins = some_margins(dice, rows.count * model.num_outputs);
  CallOptions from_margins;
  from_margins.base_margin = {margins.data(), rows.count, model.num_outputs, true};
  constexpr OutputKind kKind = OutputKind::ApproxContributions;
  for (const char* const schedule : kSchedules) {
    const auto program = program_of(model, schedule, options);
    EXPECT_TRUE(program.ok()) << schedule << ": " << program.error().text();
    const auto emulated = emulator_backend(*program, {seed, dice.percent(50) ? 32u : 64u});
    EXPECT_TRUE(emulated.ok()) << schedule << ": " << emulated.error().text();
    for (const std::size_t batch : {rows.count, std::size_t{7}})
      support::expect_same_bits(predicted(**emulated, rows, kKind, {}, batch),
                                predicted(**host, rows, kKind, {}, rows.count), schedule);
    if (model.takes_margins)
      support::expect_same_bits(predicted(**emulated, rows, kKind, from_margins, std::size_t{9}),
                                predicted(**host, rows, kKind, from_margins, rows.count), schedule);
    if (testing::Test::HasFailure()) break;
  }
  return std::size(kSchedules);
}

TEST(MappedApproxContributions, OfRandomForests) {
  std::size_t programs = 0;
  for (const std::uint64_t seed : support::sampled(300, 30, "mapped approximate contributions")) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Drawn forest = drawn(seed);
    const std::size_t count = std::min<std::size_t>(forest.count, 50);
    programs += check_approximate(forest.model, {forest.rows.data(), count, forest.model.num_features}, seed);
    if (HasFailure()) return;
  }
  EXPECT_GT(programs, 50u);
}

/// Returns calls for uncertainty: of virtual ensembles some numbers of them and of rounds, of trees some rounds.
std::vector<CallOptions> uncertain_calls(const Program& program, Dice& dice) {
  const auto rounds = static_cast<std::uint32_t>(program.round_begins().size() - 1);
  const bool trees = program.uncertainty()[0].rule == UncertaintyRule::Trees;
  std::vector<CallOptions> calls;
  for (int i = 0; i < 3; ++i) {
    CallOptions& call = calls.emplace_back();
    if (i != 0) {
      const auto begin = static_cast<std::uint32_t>(trees ? dice.below(rounds) : 0);
      call.rounds = {begin, static_cast<std::uint32_t>(dice.from_to(begin + (trees ? 1 : 2), rounds))};
    }
    const std::uint32_t end = call.rounds ? call.rounds->end : rounds;
    if (!trees) call.ensembles = static_cast<std::uint32_t>(dice.from_to(1, std::min(end / 2, 12u)));
  }
  return calls;
}

/// Expects that programs for GPUs, in the emulator, give uncertainty and virtual ensembles as one on the host does.
/// Returns the number of programs; 0 if the model has no uncertainty.
std::size_t check_uncertainty(const Model& model, const RowBlock& rows, std::uint64_t seed) {
  Dice dice(seed);
  CompileOptions options;
  options.keeps_leaves = true;
  const auto on_host = program_of(model, "auto", options);
  EXPECT_TRUE(on_host.ok()) << on_host.error().text();
  if (on_host->uncertainty().empty() || on_host->round_begins().size() < 3) return 0;
  const auto host = host_backend(*on_host);
  std::vector<OutputKind> kinds{OutputKind::Uncertainty};
  if (on_host->uncertainty()[0].rule != UncertaintyRule::Trees) kinds.push_back(OutputKind::VirtEnsembles);
  const std::vector<CallOptions> calls = uncertain_calls(*on_host, dice);
  for (const char* const schedule : kSchedules) {
    const auto program = program_of(model, schedule, options);
    EXPECT_TRUE(program.ok()) << schedule << ": " << program.error().text();
    const auto emulated = emulator_backend(*program, {seed, dice.percent(50) ? 32u : 64u});
    EXPECT_TRUE(emulated.ok()) << schedule << ": " << emulated.error().text();
    for (const CallOptions& call : calls)
      for (const OutputKind kind : kinds)
        for (const std::size_t batch : {rows.count, std::size_t{5}})
          support::expect_same_bits(predicted(**emulated, rows, kind, call, batch),
                                    predicted(**host, rows, kind, call, rows.count),
                                    std::string(schedule) + ", " + std::to_string(call.ensembles));
    if (testing::Test::HasFailure()) break;
  }
  return std::size(kSchedules);
}

/// Expects that programs for GPUs, in the emulator, stop early as one on the host does. Returns the number of programs;
/// 0 if the model has no such stop.
std::size_t check_early_stop(Model model, const RowBlock& rows, std::uint64_t seed) {
  if (model.early_stop == EarlyStopRule::None || model.score_type != ScalarType::Float64) return 0;
  model.takes_margins = true;
  Dice dice(seed);
  CompileOptions options;
  options.keeps_leaves = true;
  const auto on_host = program_of(model, "auto", options);
  EXPECT_TRUE(on_host.ok()) << on_host.error().text();
  const auto host = host_backend(*on_host);
  const std::vector<double> margins = some_margins(dice, rows.count * model.num_outputs);
  std::vector<OutputKind> kinds{OutputKind::Raw, OutputKind::Value};
  if (model.class_rule != ClassRule::None) kinds.push_back(OutputKind::Class);
  for (const char* const schedule : kSchedules) {
    const auto program = program_of(model, schedule, options);
    EXPECT_TRUE(program.ok()) << schedule << ": " << program.error().text();
    const auto emulated = emulator_backend(*program, {seed, dice.percent(50) ? 32u : 64u});
    EXPECT_TRUE(emulated.ok()) << schedule << ": " << emulated.error().text();
    for (int i = 0; i < 4; ++i) {
      CallOptions call;
      call.early_stop = {i == 0 ? 1e300 : static_cast<double>(dice.below(40)) / 8,
                         static_cast<std::uint32_t>(dice.from_to(1, 4))};
      const auto rounds = static_cast<std::uint32_t>(on_host->round_begins().size() - 1);
      if (i == 2) call.rounds = {rounds / 3, rounds};
      if (i == 3) call.base_margin = {margins.data(), rows.count, model.num_outputs, true};
      for (const OutputKind kind : kinds)
        for (const std::size_t batch : {rows.count, std::size_t{5}})
          support::expect_same_bits(
              predicted(**emulated, rows, kind, call, batch), predicted(**host, rows, kind, call, rows.count),
              std::string(schedule) + ", output " + std::to_string(static_cast<int>(kind)) + ", call " +
                  std::to_string(i));
    }
    if (testing::Test::HasFailure()) break;
  }
  return std::size(kSchedules);
}

TEST(MappedEarlyStop, OfRandomForests) {
  std::size_t distances = 0, leads = 0;
  for (const std::uint64_t seed : support::sampled(300, 40, "mapped early stops")) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    ForestOptions options;
    options.float64 = 100;
    options.linear = 30;
    options.max_features = 40;
    Model model = random_forest(dice, options);
    if (model.averaged || model.divisor != 1 || round_count(model) == 0) continue;
    model.early_stop = model.num_outputs == 1 ? EarlyStopRule::Distance : EarlyStopRule::Lead;
    const std::size_t count = dice.from_to(1, 40);
    const std::vector<float> rows = random_rows(dice, model, count);
    if (!program_of(model, "auto", {}).ok()) continue;
    (model.num_outputs == 1 ? distances : leads) +=
        check_early_stop(model, {rows.data(), count, model.num_features}, seed);
    if (HasFailure()) return;
  }
  EXPECT_TRUE(distances > 10 && leads > 10) << distances << " " << leads;
}

TEST(MappedQuantiles, HaveTheHostsBits) {
  const std::vector<double> quantiles{0.5, 0, 0.1, 1.0 / 3, 0.999, 1};
  std::size_t programs = 0;
  for (const std::uint64_t seed : support::sampled(300, 60, "mapped quantiles")) {
    Drawn forest = drawn(seed, 8);
    Model& model = forest.model;
    if (model.num_outputs != 1 || model.trees.empty()) continue;
    model.averaged = true;
    Dice dice(seed);
    const std::size_t half = forest.count / 2, count = std::min<std::size_t>(forest.count, 40);
    const auto end = forest.rows.begin() + static_cast<std::ptrdiff_t>(half * model.num_features);
    std::vector<double> targets(half);
    for (double& target : targets) target = static_cast<double>(dice.below(seed % 2 == 0 ? 5 : 10000)) / 7;
    const auto samples =
        Samples::make(model, std::vector<double>(forest.rows.begin(), end), model.num_features, targets);
    if (half == 0 || !samples.ok()) continue;
    CompileOptions options;
    options.samples = std::make_shared<const Samples>(*samples);
    const auto host = host_backend(*program_of(model, "auto", options));
    const RowBlock rows{forest.rows.data(), count, model.num_features};
    CallOptions asked;
    asked.quantiles = quantiles;
    const char* const schedule = kSchedules[seed % std::size(kSchedules)];
    const auto program = program_of(model, schedule, options);
    ASSERT_TRUE(program.ok()) << schedule << ": " << program.error().text();
    const auto emulated = emulator_backend(*program, {seed, dice.percent(50) ? 32u : 64u});
    ASSERT_TRUE(emulated.ok()) << schedule << ": " << emulated.error().text();
    ++programs;
    for (const CallOptions& call : {asked, CallOptions()})
      for (const std::size_t batch : {count, std::size_t{11}})
        support::expect_same_bits(predicted(**emulated, rows, OutputKind::Quantile, call, batch),
                                  predicted(**host, rows, OutputKind::Quantile, call, count),
                                  "seed " + std::to_string(seed) + ", " + schedule);
    if (HasFailure()) return;
  }
  EXPECT_GT(programs, 5u);
}

TEST(MappedUncertainty, OfModelsWithVirtualEnsembles) {
  const std::filesystem::path data = std::filesystem::path(FORESTVM_TEST_DATA) / "uncertainty";
  const std::vector<double> rows = support::read_numbers((data / "rows.npy").string());
  const RowBlock block{rows.data(), std::min<std::size_t>(rows.size() / 4, 40), 4, RowType::Float64};
  for (const char* const name : {"plain.json", "sampled.json", "shrunk.cbm", "gaussian.json", "binary.json",
                                 "classes.json", "one_vs_all.json"}) {
    SCOPED_TRACE(name);
    const auto model = load_model((data / name).string());
    ASSERT_TRUE(model.ok()) << model.error().text();
    EXPECT_GT(check_uncertainty(*model, block, 3), 0u);
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
  std::size_t averaged = 0;
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
    if (model.trees.size() < trees_per_round(model)) continue;
    model.averaged = true;
    std::ranges::fill(model.base, 0);
    averaged += check_uncertainty(model, {rows.data(), count, model.num_features}, seed);
    if (HasFailure()) return;
  }
  EXPECT_GT(averaged, 0u);
}

class MappedModels : public testing::TestWithParam<support::ModelFile> {};
INSTANTIATE_TEST_SUITE_P(Repository, MappedModels, testing::ValuesIn(support::repository_models()),
                         [](const auto& test) { return support::test_name(test.param.name); });

TEST_P(MappedModels, HaveTheHostsKinds) {
  const auto model = load_model(GetParam().path.string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  const support::Rows rows = support::read_rows(GetParam().path, *model);
  RowBlock block{rows.values.data(), std::min<std::size_t>(rows.count, 12), model->num_features,
                 RowType::Float64};
  block.hashed = rows.hashed;
  check_kinds(*model, block, 1);
  check_approximate(*model, block, 1);
  check_uncertainty(*model, block, 1);
  check_early_stop(*model, block, 1);
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
  Model stopping = model;
  stopping.early_stop = EarlyStopRule::Distance;
  stopping.score_type = ScalarType::Float64;
  call = {};
  call.early_stop = EarlyStop{};
  const Program kept = *program_of(stopping, "gpu", options), plain = *program_of(stopping, "gpu", {});
  EXPECT_EQ(refusal(kept, OutputKind::Raw, call), "");
  EXPECT_EQ(
      refusal(plain, OutputKind::Raw, call).find("early stop: the program does not keep each tree's leaf"),
      0u);
}

}  // namespace
}  // namespace forestvm::test::test_mapped_kinds
