// Rows drawn for `bench`: always the same, in every interval between a feature's thresholds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/named_schedules.hpp>

#include "cli/drawn_rows.hpp"

namespace forestvm::cli::test_drawn_rows {
namespace {

/// Returns a program with splits on two features and none on a third.
Program program_with(const std::vector<double>& first, double second) {
  Model model;
  model.num_features = 3;
  model.base = {0};
  const auto add_stump = [&model](std::uint32_t feature, double threshold) {
    Tree tree;
    tree.nodes.resize(3);
    tree.nodes[0] = {
        .threshold = threshold, .left = 1, .right = 2, .feature = feature, .kind = NodeKind::Less};
    model.trees.push_back(tree);
  };
  for (const double threshold : first) add_stump(0, threshold);
  add_stump(2, second);
  auto compiled = compile(model, automatic_schedule(model));
  EXPECT_TRUE(compiled.ok()) << compiled.error().text();
  return compiled->program;
}

TEST(DrawnRows, LieInEveryIntervalAlike) {
  const std::vector<double> bounds{-1, 0, 10, 10.5};
  const Rows rows = draw_rows(program_with(bounds, 3), 5000);
  ASSERT_EQ(rows.count, 5000U);
  ASSERT_EQ(rows.width, 3U);
  ASSERT_EQ(rows.values.size(), 15000U);
  std::vector<int> inside(5), second(2);
  for (std::size_t i = 0; i < rows.values.size(); i += 3) {
    const auto above = std::upper_bound(bounds.begin(), bounds.end(), double{rows.values[i]});
    ++inside[static_cast<std::size_t>(above - bounds.begin())];
    EXPECT_EQ(rows.values[i + 1], 0);
    ++second[rows.values[i + 2] < 3 ? 0 : 1];
  }
  for (const int count : inside) EXPECT_NEAR(count, 1000, 150);
  for (const int count : second) EXPECT_NEAR(count, 2500, 200);
}

TEST(DrawnRows, NameCategoriesInsideAndOutsideTheSets) {
  Model model;
  model.num_features = 1;
  model.base = {0};
  Tree tree;
  tree.nodes.resize(3);
  tree.nodes[0] = {.left = 1, .right = 2, .kind = NodeKind::Category};
  tree.category_sets = {{{5, 40}, false}};
  model.trees = {tree};
  const auto compiled = compile(model, automatic_schedule(model));
  ASSERT_TRUE(compiled.ok()) << compiled.error().text();
  const Rows rows = draw_rows(compiled->program, 2000);
  const auto named = [&](float code) {
    return std::count_if(rows.values.begin(), rows.values.end(),
                         [code](float x) { return std::trunc(x) == code; });
  };
  for (const float code : {5.0f, 40.0f, 6.0f, 39.0f, 63.0f, 65.0f, -1.0f}) EXPECT_GT(named(code), 3) << code;
}

/// All sets except the first two are stored as lists.
TEST(DrawnRows, NameCategoriesThatAreListed) {
  Model model;
  model.num_features = 3;
  model.base = {0};
  for (std::uint32_t feature = 0; feature < 3; ++feature) {
    Tree tree;
    tree.nodes.resize(3);
    tree.nodes[0] = {.left = 1, .right = 2, .feature = feature, .kind = NodeKind::Category};
    tree.category_sets = {{{feature == 2 ? 8'000'000u : 0u, kMaxCategories - 1}, false}};
    model.trees.push_back(tree);
  }
  const auto compiled = compile(model, automatic_schedule(model));
  ASSERT_TRUE(compiled.ok()) << compiled.error().text();
  ASSERT_EQ(compiled->program.category_columns()[2].listed, 1);
  const Rows rows = draw_rows(compiled->program, 1000);
  int between = 0;
  for (std::size_t i = 2; i < rows.values.size(); i += 3)
    between += rows.values[i] >= 8'000'000 && rows.values[i] < static_cast<float>(kMaxCategories) ? 1 : 0;
  EXPECT_NEAR(between, 333, 80);  // a third each: below, between and above
}

TEST(DrawnRows, AreTheSameEveryTime) {
  const Program program = program_with({1, 2}, 3);
  EXPECT_EQ(draw_rows(program, 100).values, draw_rows(program, 100).values);
  EXPECT_TRUE(draw_rows(program, 0).values.empty());
}

TEST(DrawnRows, AreFinite) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  for (const float value : draw_rows(program_with({-kLargest, 0, kLargest}, 1e-40), 1000).values)
    EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace forestvm::cli::test_drawn_rows
