// The schedule `auto`: the plans that rules choose, and the plans of least predicted cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/named_schedules.hpp>

#include "scheduler/choose/share_few_rows.hpp"
#include "scheduler/choose/walk_prediction.hpp"
#include "scheduler/choose/walk_rules.hpp"
#include "support/small_models.hpp"

namespace forestvm::test::test_automatic {
namespace {

using scheduler::ForestFacts;
using scheduler::Lanes;
using scheduler::PlanChoice;
using scheduler::WalkChoice;
using scheduler::WalkLayout;

/// Returns a complete tree whose tests go over the features in turn; `next` is the number of the next node. Siblings
/// test different features: the tree is not oblivious.
Tree complete_tree(std::uint32_t depth, std::uint32_t features, std::uint32_t& next) {
  if (depth == 0) return support::leaf(static_cast<float>(next));
  const std::uint32_t feature = next++ % features;
  const Tree left = complete_tree(depth - 1, features, next);
  return support::split(feature, 0.5, left, complete_tree(depth - 1, features, next));
}

Model complete_trees(std::uint32_t trees, std::uint32_t depth, std::uint32_t features) {
  std::vector<Tree> all;
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < trees; ++i) all.push_back(complete_tree(depth, features, next));
  Model model = support::model_of(std::move(all));
  model.num_features = features;
  return model;
}

std::vector<PlanChoice> rules_for(const Model& model) { return plans_by_rules(scheduler::facts_of(model)); }

/// Returns the last plan of the schedule `auto`.
std::string last_plan_of(const Model& model) {
  const std::string text = print(automatic_schedule(model));
  return text.substr(text.rfind("plan("));
}

/// A model that compares in float64, whose walks read values because it has many features and few trees, has a plan
/// that walks codes, which no number of float32 rows takes.
TEST(Auto, Float64RowsHaveAPlanThatWalksCodes) {
  Model model = complete_trees(2, 5, 62);
  EXPECT_EQ(last_plan_of(model).find("encode(u8)"), std::string::npos);
  model.row_type = model.score_type = ScalarType::Float64;
  EXPECT_NE(last_plan_of(model).find("encode(u8)"), std::string::npos);
  EXPECT_NE(last_plan_of(model).find("for float64 rows"), std::string::npos);
  EXPECT_NE(print(automatic_schedule(model)).find("plan(1073741824)"), std::string::npos);
  // With few features all rows walk codes.
  Model few = complete_trees(100, 5, 4);
  few.row_type = few.score_type = ScalarType::Float64;
  EXPECT_EQ(print(automatic_schedule(few)).find("plan(1073741824)"), std::string::npos);
}

TEST(WalkRules, WalkValuesOfFewRowsWhereFeaturesAreMany) {
  const std::vector<PlanChoice> many = rules_for(complete_trees(100, 7, 128)),
                                few = rules_for(complete_trees(100, 7, 8));
  EXPECT_EQ(many.front().calls, (scheduler::PlanFor{12}));
  EXPECT_TRUE(many.front().why.starts_with("walks values, because at 12 rows encoding 128 features "))
      << many.front().why;
  EXPECT_FALSE(many.front().walk.coded);
  EXPECT_TRUE(few.front().why.starts_with("walks codes, because at ")) << few.front().why;
  EXPECT_TRUE(std::all_of(few.begin(), few.end(), [](const PlanChoice& plan) { return plan.walk.coded; }));
}

/// With AVX-512 calls of 13 to 16 rows take blocks of tables, unless encoding costs more than it saves.
TEST(WalkRules, HavePlansForAvx512) {
  const std::vector<PlanChoice> plans = rules_for(complete_trees(100, 7, 8));
  ASSERT_EQ(plans.size(), 4u);
  EXPECT_EQ(plans[0].calls, (scheduler::PlanFor{12}));
  EXPECT_EQ(plans[1].calls, (scheduler::PlanFor{16, "avx512"}));
  EXPECT_EQ(plans[2].calls, (scheduler::PlanFor{16}));
  EXPECT_EQ(plans[1].walk.lanes, Lanes::Rows);
  EXPECT_EQ(plans[2].walk.lanes, Lanes::Trees);
  for (const PlanChoice& plan : rules_for(complete_trees(10, 7, 64))) EXPECT_EQ(plan.calls.size(), 1u);
}

TEST(WalkRules, HaveAPlanOfValuesBeforeOneOfCodes) {
  const std::vector<PlanChoice> plans = rules_for(complete_trees(100, 7, 80));
  EXPECT_TRUE(plans[0].why.starts_with("walks values, ")) << plans[0].why;
  EXPECT_TRUE(plans[1].why.starts_with("walks codes, ")) << plans[1].why;
}

TEST(Auto, EveryPlanSaysWhy) {
  for (const char* name : {"none", "leaves", "small", "deep", "two_outputs", "wide"})
    for (const Directive& directive : automatic_schedule(support::small_model(name)).directives)
      if (directive.kind == DirectiveKind::Plan) {
        EXPECT_TRUE(directive.remark.starts_with("walks ")) << name;
      }
  for (const Directive& directive : automatic_schedule(complete_trees(10, 2, 20'000)).directives)
    if (directive.kind == DirectiveKind::Plan) {
      EXPECT_NE(directive.remark.find("; costs are not predicted: features 20000 is outside of "),
                std::string::npos)
          << directive.remark;
    }
}

/// Returns how often a text has another.
std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// Threads share rows that are walked one by one where a row takes long.
TEST(Auto, LetsThreadsShareFewRows) {
  const std::uint32_t one[] = {1};
  const std::string blocks = "tile(batch, b0, b1, 4)\ntile(tree, t2, t3, ";
  const Model large = complete_trees(400, 7, 20), small = complete_trees(300, 7, 20);
  const std::string shared = print(automatic_schedule(large, one, 2));
  EXPECT_EQ(count_of(shared, blocks), 1u) << shared;
  EXPECT_EQ(count_of(shared, "parallel(b0)"), 1u) << shared;
  EXPECT_EQ(count_of(print(automatic_schedule(large, one)), "parallel"), 0u);
  EXPECT_EQ(automatic_schedule(small, {}, 2), automatic_schedule(small));
  ForestFacts facts = scheduler::facts_of(large);
  facts.trees = 20'000;  // a row takes longer than threads take to start
  std::vector<PlanChoice> plans = plans_by_rules(facts);
  share_few_rows(facts, {}, 2, plans);
  EXPECT_EQ(plans.front().walk.block, 1u);
}

/// Calls of few rows leave a block of rows for walks that threads share.
TEST(Auto, WalksMoreRowsOneByOneForMoreThreads) {
  const WalkChoice one_by_one{Lanes::Trees, WalkLayout::Sparse, true, 128, 0, true};
  const WalkChoice block{Lanes::Rows, WalkLayout::Tables, true, 1, 64};
  const std::vector<PlanChoice> plans = {{{4}, one_by_one, "walks codes"},
                                         {{kBatchSizeName}, block, "walks tables"}};
  const Model model = complete_trees(1000, 8, 200);
  const ForestFacts facts = scheduler::facts_of(model);
  ASSERT_EQ(scheduler::why_not_predicted(facts), "");
  const auto shared = [&](std::vector<PlanChoice> all, std::span<const std::uint32_t> rows) {
    share_few_rows(facts, rows, 8, all);
    return all;
  };
  const std::vector<PlanChoice> all = shared(plans, {});
  ASSERT_GE(all.size(), 2u);
  EXPECT_EQ(all[all.size() - 2].calls, (scheduler::PlanFor{45}));
  EXPECT_EQ(all.back().calls, (scheduler::PlanFor{kBatchSizeName}));
  EXPECT_EQ(all.back().walk, block);
  for (std::size_t i = 0; i + 1 < all.size(); ++i)
    if (all[i].calls.front().number() > 22) {
      EXPECT_EQ(all[i].walk.lanes, Lanes::Trees) << all[i].why;
      EXPECT_EQ(all[i].walk.block, 4u) << all[i].why;
    }
  EXPECT_TRUE(compile(model, automatic_schedule(model, {}, 8)).ok());
  // Plans for some numbers of rows stay as many.
  const std::uint32_t thirty[] = {30}, many[] = {64};
  const std::vector<PlanChoice> one = shared({plans.back()}, thirty);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].walk.lanes, Lanes::Trees);
  EXPECT_TRUE(one[0].why.starts_with("walks rows one by one, because 8 threads share them; at 30 rows, "))
      << one[0].why;
  EXPECT_EQ(shared({plans.back()}, many)[0].walk, block);
}

/// Models of many shapes compile with the plans that are predicted to be best, and plans say what they cost.
TEST(WalkPrediction, PlansCompile) {
  for (const std::uint32_t trees : {6u, 30u, 700u})
    for (const std::uint32_t depth : {2u, 5u, 8u})
      for (const std::uint32_t features : {3u, 40u, 900u}) {
        if (trees << depth > 50'000) continue;
        Model model = complete_trees(trees, depth, features);
        const ForestFacts facts = scheduler::facts_of(model);
        ASSERT_EQ(scheduler::why_not_predicted(facts), "");
        const std::vector<PlanChoice> plans = plans_by_prediction(facts, {});
        EXPECT_LE(plans.size(), 14u);
        for (const PlanChoice& plan : plans)
          EXPECT_NE(plan.why.find(", predicted to take "), std::string::npos) << plan.why;
        const Result<Compiled> compiled = compile(model, automatic_schedule(model));
        EXPECT_TRUE(compiled.ok()) << compiled.error().text();
        // Models that compare in float64 have a last plan for float64 rows behind the plans of both targets.
        model.row_type = model.score_type = ScalarType::Float64;
        const Result<Compiled> wide = compile(model, automatic_schedule(model));
        EXPECT_TRUE(wide.ok()) << wide.error().text();
      }
}

/// The plans of calls of one number of rows are one for all calls, or one for AVX-512 and one for others.
TEST(WalkPrediction, KeepsToTheCallsThatAreAskedFor) {
  const ForestFacts facts = scheduler::facts_of(complete_trees(100, 6, 20));
  const std::uint32_t one[] = {1}, two[] = {1, 1024};
  const std::vector<PlanChoice> few = plans_by_prediction(facts, one), both = plans_by_prediction(facts, two);
  ASSERT_LE(few.size(), 2u);
  for (const PlanChoice& plan : few) {
    EXPECT_EQ(plan.calls.front(), Argument(kBatchSizeName));
    EXPECT_NE(plan.walk.lanes, Lanes::Rows);
  }
  EXPECT_EQ(both.front().calls.front(), Argument(32));  // the geometric mean
  EXPECT_EQ(both.back().walk.lanes, Lanes::Rows);
}

/// Trees of more than 256 leaves have tables at the top in calls of many rows, unless encoding would cost more than the
/// walks.
TEST(WalkPrediction, ChoosesTopTablesForLargeTrees) {
  const auto layout_of = [](const Model& model, std::uint32_t rows) {
    return plans_by_prediction(scheduler::facts_of(model), {&rows, 1}).back().walk.layout;
  };
  EXPECT_EQ(layout_of(complete_trees(100, 9, 20), 1024), WalkLayout::TopTables);
  EXPECT_EQ(layout_of(complete_trees(100, 9, 20), 64), WalkLayout::TopTables);
  EXPECT_NE(layout_of(complete_trees(100, 9, 20), 8), WalkLayout::TopTables);
  EXPECT_EQ(layout_of(complete_trees(100, 8, 20), 1024), WalkLayout::Tables);
  EXPECT_NE(layout_of(complete_trees(2, 9, 700), 1024), WalkLayout::TopTables);
}

/// CPUs whose gathers are fast walk values in some calls of 16 rows of many features, where other CPUs have tables.
TEST(WalkPrediction, TellsFastGathersApart) {
  const std::uint32_t rows[] = {16};
  unsigned own = 0;
  for (const std::uint32_t depth : {6u, 7u, 8u})
    for (const std::uint32_t features : {130u, 200u}) {
      const std::vector<PlanChoice> plans =
          plans_by_prediction(scheduler::facts_of(complete_trees(100, depth, features)), rows);
      if (plans.front().calls != scheduler::PlanFor{kBatchSizeName, "avx512fp16"}) continue;
      ++own;
      EXPECT_EQ(plans.front().walk.layout, WalkLayout::Sparse) << plans.front().why;
      EXPECT_NE(plans[1].walk.layout, WalkLayout::Sparse) << plans[1].why;
    }
  EXPECT_GE(own, 1u);
}

/// Costs are positive, and calls of more rows cost less per row.
TEST(WalkPrediction, CostsFallWithRows) {
  const ForestFacts facts = scheduler::facts_of(complete_trees(100, 7, 20));
  const WalkChoice tables{Lanes::Rows, WalkLayout::Tables, true, 1, 64};
  const std::vector<scheduler::WalkOfCall> walks = {
      {{1, true}, tables}, {{64, true}, tables}, {{64, false}, tables}};
  const std::vector<double> costs = predicted_costs(facts, walks);
  ASSERT_EQ(costs.size(), 3u);
  EXPECT_GT(costs[0], 4 * costs[1]);
  EXPECT_GT(costs[1], 0);
  EXPECT_GT(costs[2], costs[1]);  // AVX-512 is faster
}

/// Models beyond the measured ones are left to the rules.
TEST(WalkPrediction, KnowsItsLimits) {
  const auto why_not = [](const Model& model) {
    return scheduler::why_not_predicted(scheduler::facts_of(model));
  };
  EXPECT_EQ(why_not(complete_trees(100, 6, 20)), "");
  EXPECT_NE(why_not(complete_trees(40'000, 2, 20)).find("trees 40000 is outside of "), std::string::npos);
  EXPECT_NE(why_not(complete_trees(10, 2, 20'000)).find("features 20000 is outside of "), std::string::npos);
  EXPECT_NE(why_not(support::small_model("none")).find("the trees are oblivious"), std::string::npos);
  Model vectors = complete_trees(100, 6, 20);
  vectors.trees.front().linear_leaves.resize(1);
  EXPECT_EQ(why_not(vectors), "leaves are vectors or functions");
  // All splits of a level test one feature at one threshold.
  EXPECT_EQ(why_not(complete_trees(100, 1, 1)), "the trees are oblivious");
}

}  // namespace
}  // namespace forestvm::test::test_automatic
