// The rules of `auto` for calls of few rows: values are walked where encoding costs more than it saves, and plans say
// so.
#include "scheduler/choose/few_rows_cost.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/named_schedules.hpp>

#include "support/small_models.hpp"

namespace forestvm::test::test_few_rows_cost {
namespace {

using scheduler::FewRowsCost;

/// Returns a complete tree whose tests go over the features in turn. Siblings test different features: it is not
/// oblivious.
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

/// Returns the text of the plans before the first that walks blocks of rows.
std::string few_rows_of(const Model& model) {
  const std::string text = print(automatic_schedule(model));
  return text.substr(0, text.find("tile(batch"));
}

/// Returns the last plan of the schedule `auto`.
std::string last_plan_of(const Model& model) {
  const std::string text = print(automatic_schedule(model));
  return text.substr(text.rfind("plan("));
}

/// A model that compares in float64, whose walks read values because it has many features and few trees, has a plan
/// that walks codes, which no number of float32 rows takes.
TEST(FewRowsCost, Float64RowsHaveAPlanThatWalksCodes) {
  Model model = complete_trees(2, 5, 62);
  EXPECT_EQ(last_plan_of(model).find("encode(u8)"), std::string::npos);
  model.row_type = model.score_type = ScalarType::Float64;
  EXPECT_NE(last_plan_of(model).find("encode(u8)"), std::string::npos);
  EXPECT_NE(last_plan_of(model).find("for float64 rows"), std::string::npos);
  EXPECT_NE(print(automatic_schedule(model)).find("plan(1073741824)"), std::string::npos);
  // With few features all rows walk codes.
  Model few = complete_trees(2, 5, 4);
  few.row_type = few.score_type = ScalarType::Float64;
  EXPECT_EQ(print(automatic_schedule(few)).find("plan(1073741824)"), std::string::npos);
}

TEST(FewRowsCost, EncodingIsSharedByRows) {
  const FewRowsCost cost{100, 1000};
  EXPECT_GT(cost.encode(1), 4 * cost.encode(8));
  EXPECT_GT(cost.walk_values(), cost.walk_codes());
}

TEST(FewRowsCost, ValuesAreWalkedUntilEncodingPays) {
  EXPECT_EQ((FewRowsCost{10, 1000}.rows_by_values()), 0u);           // encoding pays for one row
  EXPECT_EQ((FewRowsCost{1000, 100}.rows_by_values()), UINT32_MAX);  // encoding never pays
  const FewRowsCost some{100, 700};
  const std::uint32_t rows = some.rows_by_values();
  EXPECT_GT(rows, 1u);
  EXPECT_LT(rows, 100u);
  EXPECT_GT(some.encode(rows) + some.walk_codes(), some.walk_values());
  EXPECT_LE(some.encode(rows + 1) + some.walk_codes(), some.walk_values());
  EXPECT_EQ((FewRowsCost{0, 0}.rows_by_values()), 0u);
}

TEST(FewRowsCost, SaysWhatItComparesWith) {
  EXPECT_EQ(
      (FewRowsCost{128, 700}.why_values(1)),
      "walks values, because at 1 row encoding 128 features takes about 1.41 us a row and walking codes 0.21, walking "
      "values 0.47");
  EXPECT_EQ((FewRowsCost{10, 1000}.why_codes(16)).substr(0, 53),
            "walks codes, because at 16 rows encoding 10 features ");
}

TEST(Auto, WalksValuesOfFewRowsWhereFeaturesAreMany) {
  const std::string many = few_rows_of(complete_trees(100, 7, 128)),
                    few = few_rows_of(complete_trees(100, 7, 8));
  EXPECT_TRUE(many.starts_with("plan(12)  # walks values, because at 12 rows encoding 128 features "))
      << many;
  EXPECT_EQ(many.find("encode"), std::string::npos) << many;
  EXPECT_NE(few.find("  # walks codes, because at "), std::string::npos) << few;
  EXPECT_NE(few.find("encode(u8)"), std::string::npos) << few;
  EXPECT_EQ(few.find("walks values,"), std::string::npos) << few;
}

/// With AVX-512 calls of 13 to 16 rows take blocks of tables, unless encoding costs more than it saves.
TEST(Auto, HasPlansForAvx512) {
  const std::string text = print(automatic_schedule(complete_trees(100, 7, 8)));
  const std::size_t few = text.find("plan(12)"), blocks = text.find("plan(16, avx512)"),
                    others = text.find("plan(16)");
  ASSERT_NE(blocks, std::string::npos) << text;
  EXPECT_LT(few, blocks);
  EXPECT_LT(blocks, others);
  EXPECT_NE(text.substr(blocks, others - blocks).find("reorder(b0, tree, b1)"), std::string::npos) << text;
  EXPECT_NE(text.substr(others).find("tile(tree, t0, t1, 128)"), std::string::npos) << text;
  EXPECT_EQ(print(automatic_schedule(complete_trees(10, 7, 64))).find("avx512)"), std::string::npos);
}

TEST(Auto, HasAPlanOfValuesBeforeOneOfCodes) {
  const Model model = complete_trees(100, 7, 80);
  const std::string text = few_rows_of(model);
  const std::size_t values = text.find("  # walks values, "), codes = text.find("  # walks codes, ");
  ASSERT_NE(values, std::string::npos) << text;
  ASSERT_NE(codes, std::string::npos) << text;
  EXPECT_LT(values, codes);
  const Result<Compiled> compiled = compile(model, automatic_schedule(model));
  EXPECT_TRUE(compiled.ok()) << compiled.error().text();
}

TEST(Auto, EveryPlanSaysWhy) {
  for (const char* name : {"none", "leaves", "small", "deep", "two_outputs", "wide"})
    for (const Directive& directive : automatic_schedule(support::small_model(name)).directives)
      if (directive.kind == DirectiveKind::Plan) {
        EXPECT_TRUE(directive.remark.starts_with("walks ")) << name;
      }
}

}  // namespace
}  // namespace forestvm::test::test_few_rows_cost
