// Programs of random forests and of small models as C: every layout, tiling, reduction, kind of sum, transform and kind
// of column, against the VM.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <forestvm/background.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/export.hpp>
#include <forestvm/internal/loaded_paths.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/samples.hpp>

#include "explained_forest.hpp"
#include "exported_forests.hpp"
#include "model_rows.hpp"
#include "random_forest.hpp"
#include "random_schedule.hpp"
#include "support/golden.hpp"
#include "support/small_models.hpp"
#include "vm/derived_model.hpp"

namespace forestvm::test::test_export_c {
namespace {

constexpr ExportOptions::Trees kTrees[] = {ExportOptions::Trees::Tables, ExportOptions::Trees::Branches};
constexpr ExportOptions::Thresholds kThresholds[] = {ExportOptions::Thresholds::Float,
                                                     ExportOptions::Thresholds::Integer};

Result<Program> program_of(const Model& model, const std::string& text, Contract contract,
                           CompileOptions options = {}) {
  FVM_ASSIGN(const Schedule schedule, parse_schedule(text));
  options.contract = contract;
  FVM_ASSIGN(const Compiled compiled, compile(model, schedule, options));
  return compiled.program;
}

/// Returns options for exact and approximate contributions.
CompileOptions with_contributions() {
  CompileOptions options;
  options.contributions = options.approx_contributions = true;
  return options;
}

/// Returns a forest with covers, some of which do not add up if the seed is odd.
Model covered_forest(std::uint64_t seed) {
  Model model = drawn(seed).model;
  Dice dice(seed);
  if (seed % 2 != 0)
    for (Tree& tree : model.trees) cover(dice, tree, 0, dice.from_to(1, 1000), true);
  return model;
}

/// Schedules that together have every layout, tiling, reduction and kind of sum of the host.
const std::vector<std::string> kSchedules = {
    "",
    "reorder(tree, batch); interleave(batch)",
    "layout(tree, array); unrollWalk(tree)",
    "layout(tree, array4); unrollWalk(tree)",
    "layout(tree, reorg)",
    "layout(tree, sparse8)",
    "layout(tree, sparse16); unrollWalk(tree, 2)",
    "layout(tree, array); tileTree(tree, 2, uniform)",
    "layout(tree, reorg); tileTree(tree, 3, uniform)",
    "layout(tree, sparse); tileTree(tree, 4, uniform); unrollWalk(tree)",
    "layout(tree, sparse); tileTree(tree, 8, uniform)",
    "orderTrees(depth); split(tree, ta, tb, 3); layout(ta, array); layout(tb, sparse)",
    "orderTrees(depth); tile(tree, t0, t1, 4); specialize(t0); cache(t0)",
    "tile(tree, t0, t1, 4); reorder(t0, t1, batch); parallel(t0); parallel(t1)",
    "tile(tree, t0, t1, 4); reorder(t0, batch, t1); parallel(t0); vectorReduce(t0, 4); cache(batch, 3)",
    "tile(batch, b0, b1, 5); parallel(b0); parallel(tree); atomicReduce(tree)",
};

/// Compares random forests under each of kSchedules and each contract.
void compare_every_schedule(ForestOptions forest) {
  forest.max_trees = 12;
  forest.max_depth = 6;
  ExportedForests forests;
  std::size_t seed = 1;
  for (const std::string& schedule : kSchedules)
    for (const Contract contract : {Contract::Trainer, Contract::Reproducible, Contract::Fast}) {
      Dice dice(++seed);
      Model model;
      Result<Program> program = Error{};
      // Some forests have categories, which layouts of values do not hold, or would take too much memory.
      for (int i = 0; i < 20 && !program.ok(); ++i) {
        do model = random_forest(dice, forest);
        while (model.trees.size() < 5);
        CompileOptions options;
        options.keeps_leaves = seed % 5 < 2;
        program = program_of(model, schedule, contract, options);
      }
      if (!program.ok()) continue;
      const ExportOptions options{kTrees[seed % 2], kThresholds[seed / 2 % 2], {}};
      forests.add(*program, options, "seed " + std::to_string(seed) + ", " + schedule,
                  rows_for(dice, model, 70));
    }
  EXPECT_GT(forests.size(), 5 * kSchedules.size() / 2);
  forests.compare();
}

TEST(ExportC, EverySchedule) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  compare_every_schedule({.float64 = 40});
}

TEST(ExportC, LinearLeavesUnderEverySchedule) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  compare_every_schedule({.float64 = 100, .linear = 100});
}

/// Contributions of forests of every kind: float32 and float64, several outputs, vectors, categories, ways that test a
/// feature again, covers that are zero or do not add up.
TEST(ExportC, Contributions) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  ExportedForests forests;
  std::size_t wide = 0, vectors = 0, sets = 0, kept = 0, batches = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Model model = covered_forest(seed);
    Dice dice(seed);
    CompileOptions options = with_contributions();
    options.keeps_leaves = seed % 3 == 0;
    const auto program = program_of(model, kSchedules[seed % kSchedules.size()], Contract::Trainer, options);
    if (!program.ok() || program->paths().size() > 3000) continue;  // compilers take long for many constants
    wide += model.score_type == ScalarType::Float64;
    vectors += !program->leaf_vectors().empty();
    sets += !program->category_columns().empty();
    batches += model.trees.size() > 16;
    kept +=
        std::ranges::any_of(program->paths(), [](const PathNode& node) { return node.code == kAlwaysLeft; });
    forests.add(*program, {kTrees[seed % 2], kThresholds[seed / 2 % 2], {}}, "seed " + std::to_string(seed),
                rows_for(dice, model, 40));
  }
  EXPECT_GT(forests.size(), 30u);
  for (const std::size_t count : {wide, vectors, sets, kept, batches}) EXPECT_GT(count, 1u);
  forests.compare();
}

/// Returns a model of a tree in which so few training rows went one way that constants of interactions exceed float32.
Model model_of_rare_rows() {
  Tree tree = support::split(
      0, 5, support::split(0, 3, support::split(1, 2, support::leaf(1), support::leaf(2)), support::leaf(3)),
      support::leaf(4));
  std::size_t at = 0;
  for (float rows = 1e30f; tree.nodes[at].kind != NodeKind::Leaf; rows *= 1e-17f) {
    tree.nodes[at].cover = rows;
    tree.nodes[static_cast<std::size_t>(tree.nodes[at].right)].cover = rows;
    at = static_cast<std::size_t>(tree.nodes[at].left);
    tree.nodes[at].cover = rows * 1e-17f;
  }
  return support::model_of({tree});
}

/// Interactions of forests of every kind, and contributions of the same programs. In some, constants of interactions
/// exceed float32.
TEST(ExportC, Interactions) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  ExportedForests forests;
  std::size_t wide = 0, widened = 0, vectors = 0, sets = 0, kept = 0, several = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Model model = seed == 1 ? model_of_rare_rows() : covered_forest(seed);
    Dice dice(seed);
    CompileOptions options;
    options.interactions = true;
    const auto program = program_of(model, kSchedules[seed % kSchedules.size()], Contract::Trainer, options);
    if (!program.ok() || program->paths().size() > 2000 || model.num_features > 60) continue;
    wide += model.score_type == ScalarType::Float64;
    widened += model.score_type == ScalarType::Float32 && LoadedPaths(*program).wide;
    vectors += !program->leaf_vectors().empty();
    sets += !program->category_columns().empty();
    several += model.num_outputs > 1;
    kept +=
        std::ranges::any_of(program->paths(), [](const PathNode& node) { return node.code == kAlwaysLeft; });
    forests.add(*program, {kTrees[seed % 2], kThresholds[seed / 2 % 2], {}}, "seed " + std::to_string(seed),
                rows_for(dice, model, 20));
  }
  EXPECT_GT(forests.size(), 20u);
  EXPECT_GT(wide, 1u);
  EXPECT_EQ(widened, 1u);
  EXPECT_GT(vectors, 1u);
  EXPECT_GT(sets, 0u);
  EXPECT_GT(kept, 0u);
  EXPECT_GT(several, 1u);
  forests.compare();
}

/// Contributions against backgrounds whose paths are walked, and against those that leaves look up.
TEST(ExportC, ContributionsAgainstABackground) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  ExportedForests forests;
  std::size_t walked = 0, looked_up = 0, several = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Dice dice(seed);
    ForestOptions forest;
    forest.float64 = 50;
    forest.max_trees = 6;
    forest.max_depth = 5;
    forest.max_features = 20;
    const Model model = random_forest(dice, forest);
    auto background =
        Background::make(model, rows_for(dice, model, seed % 2 == 0 ? 2 : 40), model.num_features);
    ASSERT_TRUE(background.ok()) << background.error().text();
    CompileOptions options;
    options.background = std::make_shared<const Background>(std::move(*background));
    const auto program = program_of(model, "", Contract::Trainer, options);
    if (!program.ok()) continue;
    walked += !program->paths().empty();
    looked_up += !program->pattern_leaves().empty();
    several += !program->pattern_leaves().empty() && model.num_outputs > 1;
    forests.add(*program, {kTrees[seed % 2], kThresholds[seed / 2 % 2], {}}, "seed " + std::to_string(seed),
                rows_for(dice, model, 40));
  }
  for (const std::size_t count : {walked, looked_up, several}) EXPECT_GT(count, 3u);
  forests.compare();
}

/// Rounds, margins and early stops of calls under every schedule, of models that have all rules of rounds and stops.
TEST(ExportC, OptionsOfCalls) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  ExportedForests forests;
  std::size_t stops = 0, leads = 0, averages = 0, firsts = 0, margins = 0, kept = 0;
  for (std::uint64_t seed = 1; seed <= 2 * kSchedules.size(); ++seed) {
    Dice dice(seed);
    ForestOptions forest;
    forest.float64 = 70;
    forest.linear = 20;
    forest.max_trees = 12;
    forest.max_depth = 5;
    forest.max_features = 30;
    const Contract contract = seed % 5 == 0 ? Contract::Reproducible : Contract::Trainer;
    Result<Program> program = Error{};
    Model model;
    for (int i = 0; i < 30 && !program.ok(); ++i) {
      do model = random_forest(dice, forest);
      while (model.trees.size() < 3 * model.num_outputs || model.round_begins.size() < 4);
      model.takes_margins = seed % 4 != 0;
      model.averaged = seed % 6 == 4;
      model.base_of_first_round = seed % 6 == 2;
      model.base_last = seed % 3 == 0;
      if (model.averaged) model.takes_margins = false;
      if (model.score_type == ScalarType::Float64 && !model.averaged)
        model.early_stop = model.num_outputs > 1 ? EarlyStopRule::Lead : EarlyStopRule::Distance;
      CompileOptions options;
      options.keeps_leaves = seed % 4 != 1;
      for (Tree& tree : model.trees) cover(dice, tree, 0, 1000);
      options.contributions = options.approx_contributions = seed % 2 == 0;
      options.interactions = seed % 4 == 0;
      program = program_of(model, kSchedules[seed / 2 % kSchedules.size()], contract, options);
    }
    if (!program.ok()) continue;
    const ProgramMeta& meta = program->meta();
    kept += !program->round_begins().empty();
    stops += meta.early_stop == EarlyStopRule::Distance;
    leads += meta.early_stop == EarlyStopRule::Lead;
    averages += meta.rounds == RoundRule::Averages;
    firsts += meta.rounds == RoundRule::FirstBase;
    margins += meta.takes_margins;
    forests.add(*program, {kTrees[seed % 2], kThresholds[seed / 2 % 2], {}},
                "seed " + std::to_string(seed) + ", " + kSchedules[seed / 2 % kSchedules.size()],
                rows_for(dice, model, 70));
  }
  for (const std::size_t count : {stops, leads, averages, firsts, margins, kept}) EXPECT_GT(count, 1u);
  forests.compare();
}

/// Returns a forest whose program has uncertainty by a rule.
Model forest_of(UncertaintyRule rule, Dice& dice) {
  using enum UncertaintyRule;
  ForestOptions forest;
  forest.float64 = rule == Trees ? 50 : 100;
  forest.linear = 20;
  forest.max_trees = 14;
  forest.max_depth = 5;
  forest.max_features = 20;
  for (;;) {
    Model model = random_forest(dice, forest);
    const bool single = rule == Scores || rule == Binary, pair = rule == Gaussian;
    if (model.round_begins.size() < 9 || (single && model.num_outputs != 1) ||
        (pair && model.num_outputs != 2) || (rule == Classes && model.num_outputs < 2) || model.divisor != 1)
      continue;
    model.averaged = rule == Trees;
    if (rule == Trees) std::ranges::fill(model.base, 0.0);
    if (rule != Trees) model.uncertainty = rule;
    model.shrinkage = dice.percent(50) ? 0.125f : 0;
    model.base_last = dice.percent(50);
    if (model.base_last) model.scale = 0.75;
    return model;
  }
}

/// Virtual ensembles and uncertainty by each rule, of rounds that calls choose, too.
TEST(ExportC, Uncertainty) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  ExportedForests forests;
  for (std::uint8_t rule = 1; rule < kUncertaintyRules; ++rule)
    for (std::size_t i = 0; i < 5; ++i) {
      Dice dice(10 * rule + i);
      const std::string& schedule = kSchedules[i == 0 ? 0 : i + 10];
      CompileOptions options;
      options.keeps_leaves = true;
      Result<Program> program = Error{};
      Model model;
      for (int tries = 0; tries < 20 && !program.ok(); ++tries) {
        model = forest_of(static_cast<UncertaintyRule>(rule), dice);
        program = program_of(model, schedule, Contract::Trainer, options);
      }
      ASSERT_TRUE(program.ok()) << program.error().text();
      ASSERT_EQ(program->uncertainty().size(), 1u);
      forests.add(*program, {kTrees[i % 2], kThresholds[i / 2 % 2], {}},
                  "rule " + std::to_string(rule) + ", " + schedule, rows_for(dice, model, 70));
    }
  forests.compare();
}

/// Quantiles of few and of many targets, some of which several rows have, and of leaves without rows.
TEST(ExportC, Quantiles) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  ExportedForests forests;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Dice dice(seed);
    ForestOptions forest;
    forest.float64 = 50;
    forest.max_trees = 10;
    forest.max_depth = 5;
    forest.max_features = 20;
    Model model;
    do model = random_forest(dice, forest);
    while (model.num_outputs != 1 || model.trees.size() < 2);
    model.averaged = true;
    model.base_of_first_round = false;
    const std::size_t count = seed % 3 == 0 ? 700 : 40;
    std::vector<double> targets;
    for (std::size_t i = 0; i < count; ++i)
      targets.push_back(static_cast<double>(i * 13 % (seed % 2 == 0 ? 7 : 613)) / 8);
    auto samples = Samples::make(model, rows_for(dice, model, count), model.num_features, targets);
    ASSERT_TRUE(samples.ok()) << samples.error().text();
    CompileOptions options;
    options.samples = std::make_shared<const Samples>(std::move(*samples));
    options.keeps_leaves = seed % 4 == 0;
    const std::string& schedule = kSchedules[seed < 6 ? 0 : seed + 3];
    const auto program = program_of(model, schedule, Contract::Trainer, options);
    if (!program.ok()) continue;
    forests.add(*program, {kTrees[seed % 2], kThresholds[seed / 2 % 2], {}}, "seed " + std::to_string(seed),
                rows_for(dice, model, 70));
  }
  EXPECT_GT(forests.size(), 6u);
  forests.compare();
}

TEST(ExportC, RandomForestsAndSchedules) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  ExportedForests forests;
  for (std::size_t seed = 1000; forests.size() < 60; ++seed) {
    Dice dice(seed);
    ForestOptions forest;
    forest.float64 = 40;
    forest.max_trees = 10;
    forest.max_depth = 7;
    const Model model = random_forest(dice, forest);
    const Schedule schedule = random_schedule(dice, static_cast<std::uint32_t>(model.trees.size()), {30});
    CompileOptions options;
    options.contract = static_cast<Contract>(dice.below(3));
    const auto compiled = compile_with_kinds(model, schedule, options);
    if (!compiled.ok() || model.trees.empty() || compiled->program.code().size() > 2000) continue;
    forests.add(compiled->program, {kTrees[dice.below(2)], kThresholds[dice.below(2)], {}},
                "seed " + std::to_string(seed) + "\n" + print(schedule), rows_for(dice, model, 33));
  }
  forests.compare();
}

/// Returns a tree with leaves for which transforms have branches of their own: large, tiny, of either sign.
Tree tree_of_scores(std::uint32_t output) {
  const std::vector<double> scores = {0.0,   -0.0,  0.3,  -0.7, 5.5,  -18.9,  19.5,  -40.0,   88.71,
                                      -89.0, 104.5, -0.1, 1e-9, 1e30, -700.0, 710.0, 0x1p-130};
  Tree tree = support::leaf(2.25);
  for (std::size_t i = 0; i < scores.size(); ++i)
    tree =
        support::split(output, static_cast<double>(scores.size() - i), support::leaf(scores[i]), tree, true);
  tree.output = output;
  return tree;
}

/// Every transform, rule for labels and pair of values, with parameters, in float32 and in float64.
TEST(ExportC, EveryTransform) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  ExportedForests forests;
  Dice dice(3);
  for (std::uint8_t transform = 0; is_declared(static_cast<Transform>(transform)); ++transform)
    for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64}) {
      const auto kind = static_cast<Transform>(transform);
      const bool single =
          transform % 3 == 0 && kind != Transform::Uncertainty && kind != Transform::WeightedMedian;
      Model model = support::model_of({}, single ? 1 : 2);
      for (std::uint32_t k = 0; k < model.num_outputs; ++k) model.trees.push_back(tree_of_scores(k));
      model.round_begins = {0, model.num_outputs};
      model.score_type = model.row_type = type;
      model.transform = kind;
      model.class_rule = static_cast<ClassRule>(dice.below(14));
      if (model.class_rule == ClassRule::ArgmaxOfEach) model.group_ends = single ? 1 : 2 + dice.below(2);
      if (single) model.pair = transform % 2 == 0 ? Pair::Complement : Pair::Negation;
      model.slope = transform % 2 == 0 ? 1.75 : 1;
      model.divisor = transform % 4 == 1 ? 3 : 1;
      model.offset = -0.4;
      const auto program = program_of(model, "", Contract::Trainer);
      ASSERT_TRUE(program.ok()) << program.error().text();
      forests.add(*program, {}, std::string(name_of(model.transform)), rows_for(dice, model, 200));
    }
  forests.compare();
}

/// Lookups of hashed categories, weighted sums, and tests of both.
TEST(ExportC, DerivedColumns) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  ExportedForests forests;
  for (std::uint64_t seed = 1; seed < 6; ++seed)
    for (const char* schedule : {"", "layout(tree, array)", "encode(u8)"}) {
      Dice dice(seed);
      const Model model = derived_model(seed);
      const auto program = program_of(model, schedule, Contract::Trainer);
      ASSERT_TRUE(program.ok()) << program.error().text();
      forests.add(*program, {kTrees[seed % 2], kThresholds[seed / 2 % 2], {}}, schedule,
                  rows_for(dice, model, 90));
      forests.add(*program, {}, schedule, hashed_rows(model, derived_rows(seed, 90)));
    }
  forests.compare();
}

/// Returns a tree that tests `feature` with each threshold.
Tree tree_of_thresholds(std::uint32_t feature, const std::vector<double>& thresholds) {
  Tree tree = support::leaf(0.5);
  for (const double threshold : thresholds)
    tree = support::split(feature, threshold, support::leaf(threshold * 0.37), tree, true);
  return tree;
}

/// Features of float64 rows that need rules: thresholds that only float64 tells apart, zeros that are missing, and sets
/// of whole numbers, with fractions or of bytes, small or far apart.
TEST(ExportC, FeaturesWithRules) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  Model model =
      support::model_of({tree_of_thresholds(0, {1, 1 + 0x1p-52, 1 + 0x1p-40, 2, -1 - 0x1p-50}),
                         tree_of_thresholds(1, {0.1, -0.1, 1e-320, 1e300}), tree_of_thresholds(2, {-3, 4}),
                         tree_of_thresholds(3, {1, 2}), tree_of_thresholds(4, {1, 2}),
                         tree_of_thresholds(5, {1, 2}), tree_of_thresholds(6, {1, 2})});
  model.row_type = model.score_type = ScalarType::Float64;
  model.num_features = 7;
  for (Node& node : model.trees[2].nodes) node.missing = Missing::Zero;
  constexpr CategoryRule kRules[] = {CategoryRule::Whole, CategoryRule::AboveMinusOne, CategoryRule::Byte,
                                     CategoryRule::SignedByte};
  for (std::size_t t = 3; t < 7; ++t) {
    std::vector<CategorySet>& sets = model.trees[t].category_sets;
    const CategoryRule rule = kRules[t - 3];
    sets = {{{0, 3, 40}, false, rule}, {{5, 1'000'000, kMaxCategories - 1}, true, rule}};
    for (Node& node : model.trees[t].nodes)
      if (node.kind == NodeKind::Less) {
        node.kind = NodeKind::Category;
        node.payload = node.threshold == 1 ? 0 : 1;
        node.threshold = 0;
        node.missing_left = !sets[node.payload].members_left;
      }
  }
  Dice covers(1);
  for (Tree& tree : model.trees) cover(covers, tree, 0, 1000);
  const auto program = program_of(model, "encode(u8)", Contract::Trainer, with_contributions());
  ASSERT_TRUE(program.ok()) << program.error().text();
  EXPECT_FALSE(program->zero_missing().empty());
  const auto is = [&](auto rule) {
    const auto features = program->wide_features();
    return std::any_of(features.begin(), features.end(), rule);
  };
  EXPECT_TRUE(is([](const WideFeature& wide) { return wide.ranked == 1; }));
  EXPECT_TRUE(is([](const WideFeature& wide) { return wide.ranked == 0 && wide.bound_count > 1; }));
  for (const int categories : {1, 2, 3, 4})
    EXPECT_TRUE(is([&](const WideFeature& wide) { return wide.categories == categories; })) << categories;
  const auto sets = program->category_columns();
  EXPECT_TRUE(
      std::any_of(sets.begin(), sets.end(), [](const CategoryColumn& set) { return set.listed == 1; }));
  ExportedForests forests;
  Dice dice(1);
  for (const ExportOptions::Trees trees : kTrees)
    for (const ExportOptions::Thresholds thresholds : kThresholds)
      forests.add(*program, {trees, thresholds, {}}, "rules", rows_for(dice, model, 3000));
  forests.compare();
}

/// A call's number of rows chooses the plan, also where a part of the rows is computed at a time.
TEST(ExportC, ChoosesPlansByTheCallsRows) {
  if (!compiles("cc")) GTEST_SKIP() << "no C compiler: install gcc or clang";
  ExportedForests forests;
  Dice dice(1);
  ForestOptions forest;
  Model model = random_forest(dice, forest);
  while (model.trees.size() < 15 || model.num_outputs != 1 || model.trees[0].leaf_width != 1)
    model = random_forest(dice, forest);
  const char* const schedule = "plan(100); tile(tree, t0, t1, 3); parallel(t0); plan(BATCH)";
  const auto program = program_of(model, schedule, Contract::Trainer);
  ASSERT_TRUE(program.ok()) << program.error().text();
  const std::vector<double> rows = rows_for(dice, model, 500);
  forests.add(*program, {}, "500 rows", rows);
  forests.add(*program, {}, "100 rows", {rows.begin(), rows.begin() + 100 * model.num_features});
  forests.compare();
}

/// A C compiler need not accept more than 127 nested blocks.
TEST(ExportC, WritesTreesOfManyTestsAsTables) {
  ExportedForests forests;
  Dice dice(1);
  for (const auto& [depth, schedule, written] :
       std::vector<std::tuple<std::uint32_t, std::string, std::string>>{
           {100, "", ", as branches. */"},
           {101, "", ", too deep for branches. */"},
           {100, "layout(tree, sparse); tileTree(tree, 4, uniform)", ", as branches. */"},
           {101, "layout(tree, sparse); tileTree(tree, 4, uniform)", ", too deep for branches. */"}}) {
    const Model model = support::model_of({support::chain(3), support::chain(depth)});
    const auto program = program_of(model, schedule, Contract::Trainer);
    ASSERT_TRUE(program.ok()) << program.error().text();
    ExportOptions options;
    options.trees = ExportOptions::Trees::Branches;
    const auto exported = export_c(*program, options);
    ASSERT_TRUE(exported.ok()) << exported.error().text();
    EXPECT_NE(exported->text.find(written), std::string::npos) << depth << ": " << schedule;
    forests.add(*program, options, "a chain of " + std::to_string(depth), rows_for(dice, model, 50));
  }
  if (compiles("cc")) forests.compare();
}

TEST(ExportC, ReadsAsReviewed) {
  const auto program =
      program_of(support::small_model("small"), "tile(batch, b0, b1, 8); parallel(b0)", Contract::Trainer);
  ASSERT_TRUE(program.ok());
  const auto exported = export_c(*program, {});
  ASSERT_TRUE(exported.ok());
  support::expect_golden(std::string(FORESTVM_SOURCE_DIR) + "/tests/vm/export_c/small.c", exported->text);
}

TEST(ExportC, Refuses) {
  const auto mapped =
      program_of(support::small_model("small"), "gpuDimension(batch, grid.x)", Contract::Trainer);
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(export_c(*mapped).error().code, ErrorCode::Refused);
  const auto program = program_of(support::small_model("small"), "", Contract::Trainer);
  for (const char* prefix : {"", "9lives", "a-b", "int main"}) {
    ExportOptions options;
    options.prefix = prefix;
    EXPECT_EQ(export_c(*program, options).error().code, ErrorCode::Usage) << prefix;
  }
}

}  // namespace
}  // namespace forestvm::test::test_export_c
