// The limits of the layouts: the largest forest that fits is laid out, the next larger one is refused with
// the numbers.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/core/layout/sparse4.hpp>
#include <forestvm/core/layout/sparse8.hpp>
#include <forestvm/core/layout/tables.hpp>

#include "support/small_models.hpp"

namespace forestvm::test::test_layout_limits {
namespace {

using support::leaf;
using support::model_of;
using support::split;

/// Returns why the layout refuses the model; "" if it does not.
std::string refusal(const Model& model, const std::string& layout) {
  const auto schedule = parse_schedule("layout(tree, " + layout + ")");
  EXPECT_TRUE(schedule.ok()) << layout;
  const auto compiled = compile(model, *schedule);
  return compiled.ok() ? "" : compiled.error().message;
}

/// Returns a tree of `leaves` leaves that is as shallow as possible; all its tests have different thresholds.
Tree bushy(std::uint32_t leaves, std::uint32_t features, std::uint32_t& tests) {
  if (leaves == 1) return leaf(tests);
  const std::uint32_t number = tests++;
  const Tree left = bushy(leaves / 2, features, tests), right = bushy(leaves - leaves / 2, features, tests);
  return split(number % features, number, left, right);
}

Model of_leaves(std::uint32_t leaves, std::uint32_t features = 4) {
  std::uint32_t tests = 0;
  Model model = model_of({bushy(leaves, features, tests)});
  model.num_features = features;
  return model;
}

TEST(LayoutLimits, FeaturesOfSparse8) {
  constexpr std::uint32_t kMax = 1u << Sparse8View::kFeatureBits;
  Model model = of_leaves(9);
  model.num_features = kMax;
  EXPECT_EQ(refusal(model, "sparse8"), "");
  model.num_features = kMax + 1;
  EXPECT_EQ(refusal(model, "sparse8"),
            "trees 0 to 1: its nodes have room for 4096 features, the model has 4097");
}

TEST(LayoutLimits, LeavesOfTables) {
  EXPECT_EQ(refusal(of_leaves(kMaxTableLeaves), "tables"), "");
  EXPECT_EQ(refusal(of_leaves(kMaxTableLeaves + 1), "tables"),
            "trees 0 to 1: its tables have room for trees of 256 leaves, tree 0 has 257");
  EXPECT_EQ(refusal(of_leaves(kMaxTreeSlots + 1), "treeTables"), "");
  EXPECT_EQ(refusal(of_leaves(kMaxTreeSlots + 2), "treeTables"),
            "trees 0 to 1: its tables have room for trees of 65 leaves, tree 0 has 66");
}

TEST(LayoutLimits, DistancesInTopTables) {
  EXPECT_EQ(refusal(of_leaves(4096), "topTables"), "");
  EXPECT_EQ(refusal(of_leaves(8192), "topTables"),
            "trees 0 to 1: its nodes reach children at most 4095 nodes away, tree 0 needs 8191");
}

/// The number of a program's code columns is known only when all its trees have been laid out.
TEST(LayoutLimits, ColumnsOfSparse4) {
  const auto forest_of = [](std::uint32_t features) {  // one column for each feature
    std::vector<Tree> trees;
    for (std::uint32_t f = 0; f < features; ++f) trees.push_back(split(f, 0.5, leaf(1), leaf(2)));
    Model model = model_of(std::move(trees));
    model.num_features = features;
    return model;
  };
  EXPECT_EQ(refusal(forest_of(Sparse4View::kMaxColumns), "sparse4"), "");
  EXPECT_EQ(
      refusal(forest_of(Sparse4View::kMaxColumns + 1), "sparse4"),
      "layout sparse4: its nodes have room for 4096 columns of codes, the model's thresholds need 4097");
}

}  // namespace
}  // namespace forestvm::test::test_layout_limits
