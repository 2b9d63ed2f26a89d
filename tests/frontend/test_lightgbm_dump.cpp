// LightGBM's JSON dump: it says what the text model says, and damage is refused with its JSON path.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <forestvm/internal/reference.hpp>

#include "damaged.hpp"
#include "load_text.hpp"
#include "small_lightgbm_dump.hpp"

namespace forestvm::test::test_lightgbm_dump {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Returns the small dump with -1.25 in place of 1e300.
std::string good_dump() { return replaced(small_lightgbm_dump(), "1e+300", "-1.25"); }

TEST(LightgbmDump, SaysWhatTheFileSaid) {
  for (const std::string& form : {good_dump(), gzip(good_dump())}) {
    const Model model = loaded(form);
    EXPECT_EQ(model.format, "lightgbm-json");
    EXPECT_EQ(model.trainer, "lightgbm");
    EXPECT_EQ(model.version, "v4");
    EXPECT_EQ(model.objective, "binary");
    EXPECT_EQ(model.transform, Transform::Sigmoid);
    EXPECT_EQ(model.slope, 0.5);
    EXPECT_EQ(model.feature_names, (std::vector<std::string>{"age", "height", "weight"}));
    EXPECT_EQ(model.row_type, ScalarType::Float64);
    EXPECT_TRUE(model.tiny_is_zero);
    EXPECT_EQ(model.round_begins, (std::vector<std::uint32_t>{0, 1, 2}));
    ASSERT_EQ(model.categories.size(), 1u);
    EXPECT_EQ(model.categories[0].feature, 2u);
    EXPECT_EQ(model.categories[0].names, (std::vector<std::string>{"a", "1", "True"}));
    ASSERT_EQ(model.trees.size(), 2u);
  }
}

TEST(LightgbmDump, Nodes) {
  const Model model = loaded(good_dump());
  const Tree& tree = model.trees[0];
  EXPECT_EQ(tree.first_leaf, 2u);
  ASSERT_EQ(tree.nodes.size(), 5u);
  EXPECT_EQ(tree.nodes[0].kind, NodeKind::LessEqual);
  EXPECT_EQ(tree.nodes[0].threshold, 0.5);
  EXPECT_EQ(tree.nodes[0].left, 3);
  EXPECT_EQ(tree.nodes[0].right, 1);
  EXPECT_EQ(tree.nodes[0].cover, 100.0f);
  EXPECT_TRUE(tree.nodes[0].missing_left);
  EXPECT_EQ(tree.nodes[0].missing, Missing::None);
  EXPECT_EQ(tree.nodes[1].feature, 1u);
  EXPECT_EQ(tree.nodes[1].left, 2);
  EXPECT_EQ(tree.nodes[1].right, 4);
  EXPECT_FALSE(tree.nodes[1].missing_left);
  EXPECT_EQ(tree.nodes[1].missing, Missing::Nan);
  EXPECT_EQ(tree.nodes[4].value, 0.1);
  EXPECT_EQ(tree.nodes[4].cover, 20.0f);
  const Tree& other = model.trees[1];
  EXPECT_EQ(other.nodes[0].kind, NodeKind::Category);
  EXPECT_EQ(other.category_sets.at(0).codes, (std::vector<std::uint32_t>{0, 2, 40}));
  EXPECT_TRUE(other.category_sets[0].members_left);
  EXPECT_EQ(other.category_sets[0].rule, CategoryRule::AboveMinusOne);
  ASSERT_EQ(other.linear_leaves.size(), 2u);
  EXPECT_EQ(other.linear_leaves[other.nodes[1].payload].constant, 3);
  EXPECT_EQ(other.linear_leaves[other.nodes[1].payload].coefficients, (std::vector<double>{0.5, -2}));
  EXPECT_EQ(other.linear_leaves[other.nodes[2].payload].constant, 4);
}

/// The dump writes 1e300 for infinity. What was the largest value in training tells whether it can be another number.
TEST(LightgbmDump, InfiniteThresholds) {
  const std::string dump = small_lightgbm_dump();
  EXPECT_EQ(
      load_text(dump).error().text(),
      "tree_info[0]: tree 0, split 1: threshold: LightGBM's dump writes 1e300 for infinity and for large numbers, "
      "which cannot be told apart here: save the model as text (Booster.save_model)");
  const std::string known = replaced(dump, R"("weight": {)", R"("height": {"max_value": 9}, "weight": {)");
  EXPECT_EQ(loaded(known).trees[0].nodes[1].threshold, kInfinity);
  EXPECT_EQ(loaded(replaced(known, "1e+300", "-1e+300")).trees[0].nodes[1].threshold, -kInfinity);
  EXPECT_FALSE(load_text(replaced(known, R"("max_value": 9)", R"("max_value": 1e+300)")).ok());
}

/// Other writers may sort the members.
TEST(LightgbmDump, SortedMembers) {
  const std::string sorted = replaced(replaced(good_dump(), R"("name": "tree", )", ""),
                                      R"("average_output": false,)", R"("name": "tree",)");
  EXPECT_TRUE(load_text(replaced(sorted, "{", R"({"average_output": false, )")).ok());
}

TEST(LightgbmDump, DeepTrees) {
  std::string head = good_dump(), tail = "}";
  head.resize(head.find("{\"tree_index\": 0"));
  constexpr int depth = 5000;
  head += R"({"tree_structure": )";
  for (int i = 0; i < depth; ++i) {
    head +=
        R"({"split_index": )" + std::to_string(i) +
        R"(, "split_feature": 0, "threshold": 1, "decision_type": "<=", "default_left": true, "missing_type": "NaN",
"right_child": {"leaf_index": )" +
        std::to_string(i) + R"(, "leaf_value": 1}, "left_child": )";
    tail += "}";
  }
  head += R"({"leaf_index": )" + std::to_string(depth) + R"(, "leaf_value": 7})";
  const Model model = loaded(head + tail + "]}");
  EXPECT_EQ(reference_predict(model, std::vector<float>{0, 0, 0}, 1)->raw, std::vector<double>{7});
}

TEST(LightgbmDump, RefusesDamage) {
  const struct {
    const char *from, *to, *sentence;
  } cases[] = {
      {R"("average_output": false,)", "",
       "average_output: missing: a dump of LightGBM before 2.2, which does not say the objective: load the model in "
       "LightGBM and save it as text (Booster.save_model)"},
      {R"("v4")", R"("v5")", "version: version: the format is v2 (LightGBM 2.0), v3 or v4, found \"v5\""},
      {R"("num_class": 1)", R"("num_class": 2)",
       "num_tree_per_iteration: num_tree_per_iteration: 1, but num_class 2"},
      {R"("num_class": 1, )", "", "num_class: num_class: 0 numbers instead of 1"},
      {R"("height", )", "", "feature_names: feature_names: 2 names for 3 features"},
      {R"("height")", "7", "feature_names: found a number, which does not belong here"},
      {R"("leaf_index": 1)", R"("leaf_index": 0)", "tree_info[0]: tree 0, leaf 0: its number is given twice"},
      {R"("leaf_index": 1)", R"("leaf_index": 3)", "tree_info[0]: tree 0, leaf 3: the tree has 3 leaves"},
      {R"("leaf_index": 1)", R"("leaf_index": -1)", "tree_info[0]: tree 0, leaf -1: the tree has 3 leaves"},
      {R"("leaf_index": 1, )", "", "tree_info[0]: tree 0, leaf 0: leaf_index is missing"},
      {R"("split_index": 1)", R"("split_index": 2)", "tree_info[0]: tree 0, split 2: the tree has 2 splits"},
      {R"("split_index": 1, )", "",
       "tree_info[0]: tree 0, leaf 0: a node must have either split_index or leaf_value"},
      {R"("split_feature": 0)", R"("split_feature": -1)",
       "tree_info[0]: tree 0, split 0: feature -1 does not exist"},
      {R"("split_feature": 0)", R"("split_feature": 3)",
       "tree_info[0]: tree 0, node 0: feature 3 does not exist: the model has 3"},
      {R"("split_feature": 0, )", "", "tree_info[0]: tree 0, split 0: split_feature is missing"},
      {R"("threshold": 0.5)", R"("threshold": "0.5")",
       "tree_info[0]: tree 0, split 0: threshold is missing or no number"},
      {R"("<=")", R"("<")", "tree_info[0].decision_type: unknown: \"<\""},
      {R"("None")", R"("Some")", "tree_info[0].missing_type: unknown: \"Some\""},
      {R"("default_left": true)", R"("default_left": 1)",
       "tree_info[0]: tree 0, split 0: default_left is missing"},
      {R"("left_child")", R"("right_child")", "tree_info[0].right_child: a node with two of these"},
      {R"("left_child")", R"("other_child")", "tree_info[0]: tree 0, leaf 2: the tree has 2 leaves"},
      {R"("left_child": {"leaf_index": 0, "leaf_value": 1, "leaf_count": 30, "leaf_const": 3,
   "leaf_features": [0, 1], "leaf_coeff": [0.5, -2]},
  "right_child": {"leaf_index": 1)",
       R"("right_child": {"leaf_index": 0)",
       "tree_info[1]: tree 1, split 0: left_child or right_child is missing"},
      {R"("leaf_value": 0.25)", R"("leaf_value": 1e300)",
       "tree_info[0]: tree 0, leaf 1: leaf_value: LightGBM's dump writes 1e300 for larger numbers"},
      {R"("2||0||40")", R"("2||0|40")",
       "tree_info[1]: tree 1, split 0: threshold: expected categories below 16777216, found \"2||0|40\""},
      {R"("2||0||40")", R"("2||16777216")",
       "tree_info[1]: tree 1, split 0: threshold: expected categories below 16777216, found \"2||16777216\""},
      {R"("2||0||40")", R"("2||0||2")",
       "tree_info[1]: tree 1: the codes of a category set are not ascending"},
      {R"("2||0||40")", "2", "tree_info[1]: tree 1, split 0: threshold is missing or no list of categories"},
      {R"("leaf_const": 3)", R"("const": 3)",
       "tree_info[1]: tree 1: only some of the leaves have leaf_const"},
      {R"("leaf_const": 3,
   "leaf_features": [0, 1])",
       R"("leaf_const": 3,
   "leaf_features": [0])",
       "tree_info[1]: tree 1: a linear leaf with features and no coefficients"},
      {"[0, 1]", "[0, 1.5]", "tree_info[1].leaf_features: found a number, which does not belong here"},
      {R"([["a")", R"([{"a")",
       "pandas_categorical: expected null, or a list of lists of texts, numbers and booleans; found an object"},
  };
  for (const auto& row : cases) {
    const Result<Model> model = load_text(replaced(good_dump(), row.from, row.to));
    ASSERT_FALSE(model.ok()) << row.sentence;
    EXPECT_EQ(model.error().text(), row.sentence);
  }
}

TEST(LightgbmDump, OverTheLimits) {
  LoadLimits limits;
  limits.max_trees = 1;
  EXPECT_FALSE(load_text(good_dump(), limits).ok());
  limits = {};
  limits.max_nodes = 7;
  EXPECT_FALSE(load_text(good_dump(), limits).ok());
  limits.max_nodes = 8;
  EXPECT_TRUE(load_text(good_dump(), limits).ok());
  std::string empty = R"({"name": "tree", "tree_info": [{"tree_structure": )";
  for (int i = 0; i < 1000; ++i) empty += R"({"left_child": )";
  EXPECT_EQ(load_text(empty).error().message, "more nodes than the file has room for");
  const Result<Model> deep = load_text(R"({"name": "tree", "more": )" + std::string(1000, '['));
  ASSERT_FALSE(deep.ok());
  EXPECT_NE(deep.error().message.find("nested deeper than 64 levels"), std::string::npos)
      << deep.error().text();
}

TEST(SweepLightgbmDump, EveryTruncationIsRefused) {
  const std::string good = good_dump();
  ASSERT_TRUE(load_text(good).ok());
  for (std::size_t length = 0; length < good.size(); ++length)
    refusal_of(std::to_string(length), good.substr(0, length));
}

TEST(SweepLightgbmDump, EveryBitFlipIsRefusedOrSafe) { survive_bit_flips({good_dump()}); }

TEST(SweepLightgbmDump, EveryByteReplacedIsRefusedOrSafe) {
  survive_bytes_replaced({good_dump()}, {'\0', '\xff', '[', '{', '}', ',', '9', '-', '"'});
}

/// Replaces every number, and every text, by each of several odd values.
TEST(SweepLightgbmDump, OddNumbersAreRefusedOrSafe) {
  const std::string good = good_dump();
  for (std::size_t at = 0; at < good.size(); ++at) {
    const bool starts = good[at] >= '0' && good[at] <= '9' && (good[at - 1] == ' ' || good[at - 1] == '[');
    if (!starts) continue;
    const std::size_t end = good.find_first_of(",]} \n", at);
    for (const char* const odd :
         {"-1", "99999", "2147483647", "9223372036854775807", "1e308", "null", "\"a\"", "[]"})
      survive(good.substr(0, at) + odd + good.substr(end));
  }
}

}  // namespace
}  // namespace forestvm::test::test_lightgbm_dump
