// A LightGBM file and the Model made of it: nodes and their numbers, kinds of missing values, objectives,
// rounds; what is not supported is refused by name.
#include <gtest/gtest.h>

#include <forestvm/internal/reference.hpp>

#include <cmath>
#include <functional>
#include <limits>

#include "small_lightgbm.hpp"

namespace forestvm::test::test_lightgbm_load {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Reference judged(const Model& model, const std::vector<float>& rows) {
  Result<Reference> out = reference_predict(model, rows, rows.size() / model.num_features);
  EXPECT_TRUE(out.ok()) << out.error().text();
  return out.ok() ? std::move(out).value() : Reference{};
}

TEST(LightgbmLoad, SaysWhatTheFileSaid) {
  const std::string text = SmallLightgbm{}.text();
  for (const std::string& form : {text, gzip(text)}) {
    const Model model = loaded(form);
    EXPECT_EQ(model.format, "lightgbm-text");
    EXPECT_EQ(model.trainer, "lightgbm");
    EXPECT_EQ(model.version, "v4");
    EXPECT_EQ(model.objective, "regression");
    EXPECT_EQ(model.num_features, 3u);
    EXPECT_EQ(model.feature_names, (std::vector<std::string>{"age", "height", "weight"}));
    EXPECT_EQ(model.score_type, ScalarType::Float64);
    EXPECT_TRUE(model.tiny_is_zero);
    EXPECT_EQ(model.base, std::vector<double>{0});
    EXPECT_EQ(model.round_begins, (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_FALSE(model.averaged);
    ASSERT_EQ(model.trees.size(), 2u);
  }
}

TEST(LightgbmLoad, LeavesFollowTheSplits) {
  const Tree tree = loaded(SmallLightgbm{}.text()).trees.at(0);
  EXPECT_EQ(tree.first_leaf, 2u);
  const std::vector<Node>& nodes = tree.nodes;
  ASSERT_EQ(nodes.size(), 5u);
  EXPECT_EQ(nodes[0].kind, NodeKind::LessEqual);
  EXPECT_EQ(nodes[0].threshold, 0.5);
  EXPECT_EQ(nodes[0].feature, 0u);
  EXPECT_EQ(nodes[0].left, 3);  // leaf 1
  EXPECT_EQ(nodes[0].right, 1);
  EXPECT_EQ(nodes[0].missing, Missing::None);
  EXPECT_TRUE(nodes[0].missing_left);
  EXPECT_EQ(nodes[0].cover, 100.0f);
  EXPECT_EQ(nodes[1].feature, 2u);
  EXPECT_EQ(nodes[1].left, 2);
  EXPECT_EQ(nodes[1].right, 4);
  EXPECT_EQ(nodes[1].missing, Missing::Nan);
  EXPECT_FALSE(nodes[1].missing_left);
  EXPECT_EQ(nodes[4].kind, NodeKind::Leaf);
  EXPECT_EQ(nodes[4].value, 0.1);
  EXPECT_EQ(nodes[4].cover, 20.0f);
  EXPECT_EQ(leaf_number(tree, 4), 2);
  EXPECT_EQ(judged(loaded(SmallLightgbm{}.text()), {0.5f, 0, 0}).leaf, (std::vector<std::int32_t>{1, 1}));
}

TEST(LightgbmLoad, OneLeaf) {
  SmallLightgbm small;
  small.trees = {{"1", "0", "", "", "", "", "", "0.5", "", "", ""}};
  const Model model = loaded(small.text());
  const Reference out = judged(model, {nan, 1, 2});
  EXPECT_EQ(out.raw, std::vector<double>{0.5});
  EXPECT_EQ(out.leaf, std::vector<std::int32_t>{0});
}

TEST(LightgbmLoad, NoTrees) {
  SmallLightgbm small;
  small.trees.clear();
  EXPECT_EQ(judged(loaded(small.text()), {0, 0, 0}).raw, std::vector<double>{0});
}

TEST(LightgbmLoad, OtherFormsOfTheHeader) {
  SmallLightgbm small;
  small.version = "v3";
  small.tree_sizes = false;
  small.objective = "";
  small.feature_names = "Column_0 Column_1 Column_2";
  small.trees[0].more = "shrinkage=1\n";
  const Model model = loaded(small.text());
  EXPECT_EQ(model.objective, "");
  EXPECT_EQ(model.transform, Transform::Identity);
  EXPECT_TRUE(model.feature_names.empty());
  small.feature_names = "Column_0 Column_2 Column_1";
  EXPECT_EQ(loaded(small.text()).feature_names.size(), 3u);
  small.feature_names = "a=b na\xc3\xafve \"x\"";
  EXPECT_EQ(loaded(small.text()).feature_names[0], "a=b");
  const std::string text = small.text();
  const std::string end = "end of trees";
  EXPECT_TRUE(load_text(text.substr(0, text.find(end) + end.size())).ok());
}

TEST(LightgbmLoad, Objectives) {
  const struct {
    const char* line;
    Transform transform;
    ClassRule rule;
    double slope;
  } cases[] = {
      {"regression", Transform::Identity, ClassRule::None, 1},
      {"regression sqrt", Transform::SignedSquare, ClassRule::None, 1},
      {"regression_l1", Transform::Identity, ClassRule::None, 1},
      {"huber", Transform::Identity, ClassRule::None, 1},
      {"fair sqrt", Transform::SignedSquare, ClassRule::None, 1},
      {"quantile", Transform::Identity, ClassRule::None, 1},
      {"mape", Transform::Identity, ClassRule::None, 1},
      {"poisson", Transform::Exp, ClassRule::None, 1},
      {"gamma", Transform::Exp, ClassRule::None, 1},
      {"tweedie", Transform::Exp, ClassRule::None, 1},
      {"binary sigmoid:1", Transform::Sigmoid, ClassRule::AboveHalf, 1},
      {"binary sigmoid:0.7", Transform::Sigmoid, ClassRule::AboveHalf, 0.7},
      {"cross_entropy", Transform::Sigmoid, ClassRule::None, 1},
      {"cross_entropy_lambda", Transform::Log1pExp, ClassRule::None, 1},
      {"xentropy", Transform::Sigmoid, ClassRule::None, 1},
      {"xentlambda", Transform::Log1pExp, ClassRule::None, 1},
      {"lambdarank", Transform::Identity, ClassRule::None, 1},
      {"rank_xendcg", Transform::Identity, ClassRule::None, 1},
      {"custom", Transform::Identity, ClassRule::None, 1},
  };
  for (const auto& row : cases) {
    SmallLightgbm small;
    small.objective = std::string("objective=") + row.line + "\n";
    const Model model = loaded(small.text());
    EXPECT_EQ(model.transform, row.transform) << row.line;
    EXPECT_EQ(model.class_rule, row.rule) << row.line;
    EXPECT_EQ(model.slope, row.slope) << row.line;
  }
}

TEST(LightgbmLoad, Classes) {
  SmallLightgbm small;
  small.num_class = small.num_tree_per_iteration = "2";
  small.trees.resize(4);
  small.objective = "objective=multiclass num_class:2\n";
  const Model model = loaded(small.text());
  EXPECT_EQ(model.num_outputs, 2u);
  EXPECT_EQ(model.transform, Transform::Softmax);
  EXPECT_EQ(model.class_rule, ClassRule::Argmax);
  EXPECT_EQ(model.round_begins, (std::vector<std::uint32_t>{0, 2, 4}));
  EXPECT_EQ(model.trees[0].gains, (std::vector<float>{3, 1, 0, 0, 0}));
  EXPECT_EQ(model.trees[2].output, 0u);
  EXPECT_EQ(model.trees[3].output, 1u);
  small.objective = "objective=multiclassova num_class:2 sigmoid:0.5\n";
  EXPECT_EQ(loaded(small.text()).slope, 0.5);
  EXPECT_EQ(loaded(small.text()).transform, Transform::Sigmoid);
}

TEST(LightgbmLoad, Averages) {
  SmallLightgbm small;
  small.average_output = "average_output\n";
  const Model model = loaded(small.text());
  EXPECT_EQ(model.transform, Transform::Average);
  const Reference out = judged(model, {0, 0, 0});
  EXPECT_EQ(out.raw, std::vector<double>{0.5});
  EXPECT_EQ(out.value, std::vector<double>{0.25});
  small.objective = "objective=binary sigmoid:1\n";
  EXPECT_EQ(loaded(small.text()).transform, Transform::Sigmoid);
  EXPECT_TRUE(loaded(small.text()).averaged);
}

/// A rule that does not suit the number of scores would read scores that are not there.
TEST(LightgbmLoad, EarlyStopSuitsTheNumberOfScores) {
  const auto rule = [](const char* classes, const std::string& objective) {
    SmallLightgbm small;
    small.num_class = small.num_tree_per_iteration = classes;
    small.objective = "objective=" + objective + "\n";
    return loaded(small.text()).early_stop;
  };
  EXPECT_EQ(rule("1", "regression"), EarlyStopRule::None);
  EXPECT_EQ(rule("1", "binary sigmoid:1"), EarlyStopRule::Distance);
  EXPECT_EQ(rule("2", "lambdarank"), EarlyStopRule::None);
  EXPECT_EQ(rule("2", "multiclass num_class:2"), EarlyStopRule::Lead);
  EXPECT_EQ(rule("1", "multiclass num_class:1"), EarlyStopRule::None);
}

TEST(LightgbmLoad, MissingValues) {
  const float tiny = 1e-35f;
  const float above = std::nextafter(tiny, 1.0f);
  // Leaf 1 is left of 0.5, leaf 0 right of it.
  const auto leaf = [](const char* decision_type, const char* threshold, float x) {
    SmallLightgbm small;
    small.trees = {{"2", "0", "0", threshold, decision_type, "-2", "-1", "1 2", "", "", ""}};
    return judged(loaded(small.text()), {x, 0, 0}).leaf.at(0);
  };
  for (const char* none : {"0", "2"}) {
    EXPECT_EQ(leaf(none, "-0.5", nan), 0) << "NaN is 0";
    EXPECT_EQ(leaf(none, "0.5", nan), 1) << "NaN is 0";
  }
  EXPECT_EQ(leaf("4", "0.5", nan), 0);
  EXPECT_EQ(leaf("6", "-0.5", nan), 1);
  EXPECT_EQ(leaf("4", "0.5", tiny), 0);
  EXPECT_EQ(leaf("6", "-0.5", -tiny), 1);
  EXPECT_EQ(leaf("4", "0.5", above), 1);
  EXPECT_EQ(leaf("6", "-0.5", above), 0);
  EXPECT_EQ(leaf("8", "0.5", nan), 0);
  EXPECT_EQ(leaf("10", "-0.5", nan), 1);
  EXPECT_EQ(leaf("8", "0.5", tiny), 1);
  for (const char* any : {"2", "10"}) {
    EXPECT_EQ(leaf(any, "0", tiny), 1) << "it counts as 0";
    EXPECT_EQ(leaf(any, "0", above), 0);
    EXPECT_EQ(leaf(any, "-1e-40", -tiny), 0) << "it counts as 0";
  }
}

TEST(LightgbmLoad, InfiniteThresholds) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  SmallLightgbm small;
  small.trees = {{"2", "0", "0", "inf", "8", "-2", "-1", "1 2", "", "", ""}};
  EXPECT_EQ(judged(loaded(small.text()), {inf, 0, 0, nan, 0, 0}).leaf, (std::vector<std::int32_t>{1, 0}));
  small.trees[0].threshold = "-inf";
  EXPECT_EQ(judged(loaded(small.text()), {-inf, 0, 0, -3e38f, 0, 0}).leaf, (std::vector<std::int32_t>{1, 0}));
}

TEST(LightgbmLoad, NumbersAreRoundedOnce) {
  SmallLightgbm small;
  small.trees[0].threshold = "1.0000000180025095e-35 -1e300";
  small.trees[0].leaf_value = "4.9406564584124654e-324 -1.7976931348623157e308 9007199254740993";
  const std::vector<Node> nodes = loaded(small.text()).trees.at(0).nodes;
  EXPECT_EQ(nodes[0].threshold, kTiny);
  EXPECT_EQ(nodes[1].threshold, -1e300);
  EXPECT_EQ(nodes[2].value, std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(nodes[3].value, std::numeric_limits<double>::lowest());
  EXPECT_EQ(nodes[4].value, 9007199254740992.0);
}

/// Returns a model in which both splits of the second tree are categorical, with the sets in the other order.
SmallLightgbm categorical() {
  SmallLightgbm small;
  SmallLightgbmTree& tree = small.trees[1];
  tree.num_cat = "2";
  tree.threshold = "1 0";
  tree.decision_type = "3 9";
  tree.more = "cat_boundaries=0 1 3\ncat_threshold=2147483649 8 4\nis_linear=0\nshrinkage=0.1\n";
  return small;
}

TEST(LightgbmLoad, CategoricalSplits) {
  const Tree tree = loaded(categorical().text()).trees.at(1);
  ASSERT_EQ(tree.category_sets.size(), 2u);
  EXPECT_EQ(tree.category_sets[0].codes, (std::vector<std::uint32_t>{0, 31}));
  EXPECT_EQ(tree.category_sets[1].codes, (std::vector<std::uint32_t>{3, 34}));
  for (std::size_t n = 0; n < 2; ++n) {
    EXPECT_TRUE(tree.category_sets[n].members_left);
    EXPECT_EQ(tree.category_sets[n].rule, CategoryRule::AboveMinusOne);
    EXPECT_EQ(tree.nodes[n].kind, NodeKind::Category);
    EXPECT_EQ(tree.nodes[n].threshold, 0);
    EXPECT_EQ(tree.nodes[n].payload, 1 - n);
    // NaN goes right, whatever the file says about missing values.
    EXPECT_FALSE(tree.nodes[n].missing_left);
    EXPECT_EQ(tree.nodes[n].missing, Missing::Nan);
  }
}

TEST(LightgbmLoad, RefusesDamagedCategories) {
  const auto lists = [](const std::string& bounds, const std::string& words) {
    return [text = "cat_boundaries=" + bounds + "\ncat_threshold=" + words + "\n"](SmallLightgbmTree& t) {
      t.more = text;
    };
  };
  const struct {
    const char* name;
    std::function<void(SmallLightgbmTree&)> damage;
    std::string text;
  } cases[] = {
      {"one set too few", [](SmallLightgbmTree& t) { t.num_cat = "1"; },
       "line 33: tree 1: num_cat: 1 categorical splits, but the tree has 2"},
      {"a negative count", [](SmallLightgbmTree& t) { t.num_cat = "-1"; },
       "line 33: tree 1: num_cat: -1 is not within 0 and 1073741824"},
      {"no lists", [](SmallLightgbmTree& t) { t.more = "is_linear=0\n"; },
       "line 33: tree 1: cat_boundaries or cat_threshold is missing"},
      {"a set that is not there", [](SmallLightgbmTree& t) { t.threshold = "2 0"; },
       "line 36: tree 1, node 0: there is no set of categories 2.000000: the tree has 2"},
      {"a set with a fraction", [](SmallLightgbmTree& t) { t.threshold = "0.5 0"; },
       "line 36: tree 1, node 0: there is no set of categories 0.500000: the tree has 2"},
      {"a negative set", [](SmallLightgbmTree& t) { t.threshold = "0 -1"; },
       "line 36: tree 1, node 1: there is no set of categories -1.000000: the tree has 2"},
      {"bounds that descend", lists("0 4 3", "1 8 4"), "line 46: tree 1: cat_boundaries: 3 comes after 4"},
      {"bounds that begin later", lists("1 2 3", "1 8 4"), "line 46: tree 1: cat_boundaries: the first is 1"},
      {"one bound too few", lists("0 3", "1 8 4"), "line 46: tree 1: cat_boundaries: 2 numbers instead of 3"},
      {"one word too few", lists("0 1 3", "1 8"), "line 47: tree 1: cat_threshold: 2 numbers instead of 3"},
      {"more words than memory has", lists("0 1 9223372036854775807", "1 8"),
       "line 47: tree 1: cat_threshold: 2 numbers instead of 9223372036854775807"},
      {"a word of 33 bits", lists("0 1 3", "1 4294967296 4"),
       "line 47: tree 1: cat_threshold: set 1: 4294967296 is not a word of 32 bits"},
      {"a negative word", lists("0 1 3", "-1 8 4"),
       "line 47: tree 1: cat_threshold: set 0: -1 is not a word of 32 bits"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    SmallLightgbm small = categorical();
    c.damage(small.trees[1]);
    const Result<Model> model = load_text(small.text());
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().text(), c.text);
  }
  SmallLightgbm large = categorical();
  std::string words;
  for (std::uint32_t i = 0; i < kMaxCategories / 32; ++i) words += "0 ";
  large.trees[1].more = "cat_boundaries=0 1 524290\ncat_threshold=1 " + words + "16\n";
  EXPECT_EQ(load_text(large.text()).error().text(),
            "line 47: tree 1: cat_threshold: set 1: category 16777220 is over the limit of 16777215");
}

/// Returns a model whose second tree has linear leaves of 2, 0 and 1 features.
SmallLightgbm linear() {
  SmallLightgbm small;
  small.trees[1].more =
      "is_linear=1\nleaf_const=1 2 3\nnum_features=2 0 1\nleaf_features=2 0   1 \nleaf_coeff=0.5 -4   8 \n";
  return small;
}

TEST(LightgbmLoad, LinearLeaves) {
  const Model model = loaded(linear().text());
  EXPECT_TRUE(model.trees.at(0).linear_leaves.empty());
  const Tree& tree = model.trees.at(1);
  ASSERT_EQ(tree.linear_leaves.size(), 3u);
  EXPECT_EQ(tree.linear_leaves[0].constant, 1);
  EXPECT_EQ(tree.linear_leaves[0].features, (std::vector<std::uint32_t>{2, 0}));
  EXPECT_EQ(tree.linear_leaves[0].coefficients, (std::vector<double>{0.5, -4}));
  EXPECT_TRUE(tree.linear_leaves[1].features.empty());
  EXPECT_EQ(tree.linear_leaves[2].features, std::vector<std::uint32_t>{1});
  for (std::size_t leaf = 0; leaf < 3; ++leaf) EXPECT_EQ(tree.nodes[2 + leaf].payload, leaf);
  // Leaf 2 of both trees; the first tree's is 0.1.
  EXPECT_EQ(judged(model, {1, 0.5f, 0}).raw, std::vector<double>{0.10000000000000001 + 7});
  EXPECT_EQ(judged(model, {1, nan, 0}).raw, std::vector<double>{0.10000000000000001 + 0.10000000000000001});
}

TEST(LightgbmLoad, RefusesDamagedLinearLeaves) {
  const std::string good = linear().text();
  const struct {
    const char *from, *to, *sentence;
  } cases[] = {
      {"leaf_const=1 2 3\n", "",
       "line 46: tree 1: leaf_const, num_features, leaf_features or leaf_coeff is missing"},
      {"leaf_const=1 2 3", "leaf_const=1 2", "line 47: tree 1: leaf_const: 2 numbers instead of 3"},
      {"num_features=2 0 1", "num_features=2 0 2", "line 49: tree 1: leaf_features: 3 numbers instead of 4"},
      {"num_features=2 0 1", "num_features=2 -1 1",
       "line 48: tree 1, node 3: a linear function of -1 features"},
      {"num_features=2 0 1", "num_features=2 0 99999999999",
       "line 48: tree 1, node 4: a linear function of 99999999999 features"},
      {"leaf_features=2 0", "leaf_features=2 -1", "line 49: tree 1, node 2: feature -1 does not exist"},
      {"leaf_features=2 0", "leaf_features=2 3", "line 31: tree 1: a linear leaf uses feature 3"},
      {"leaf_coeff=0.5", "leaf_coeff=inf", "line 31: tree 1: a linear leaf with a number that is not finite"},
      {"leaf_coeff=0.5", "leaf_coeff=nan", "line 50: tree 1: leaf_coeff[0]: not a number: \"nan\""},
  };
  for (const auto& row : cases) {
    std::string text = replaced(good, row.from, row.to);
    const std::size_t sizes = text.find("tree_sizes="), end = text.find('\n', sizes);
    text.replace(sizes, end - sizes, "label_index=0");
    EXPECT_EQ(load_text(text).error().text(), row.sentence);
  }
}

/// Returns a model with two categorical features, 1 and 2, of which the second has names with `lists`.
std::string with_pandas(const std::string& lists, const std::string& parameter = "") {
  SmallLightgbm small;
  small.feature_infos = "[-1:1] 0:2:1 -1:3";
  return small.text() + (parameter.empty() ? "" : "[categorical_feature: " + parameter + "]\n") +
         "end of parameters\n\npandas_categorical:" + lists + "\n";
}

TEST(LightgbmLoad, CategoryNames) {
  const std::string lists = R"([["red", "gr\u00fcn", ""], [-5, 0.1, 1e+22, true, false]])";
  const std::vector<FeatureCategories> categories = loaded(with_pandas(lists)).categories;
  ASSERT_EQ(categories.size(), 2u);
  EXPECT_EQ(categories[0].feature, 1u);
  EXPECT_EQ(categories[0].names, (std::vector<std::string>{"red", "gr\xc3\xbcn", ""}));
  ASSERT_TRUE(categories[0].unseen.has_value());
  EXPECT_TRUE(std::isnan(*categories[0].unseen));
  EXPECT_EQ(categories[1].feature, 2u);
  EXPECT_EQ(categories[1].names, (std::vector<std::string>{"-5", "0.1", "1e+22", "True", "False"}));
  EXPECT_EQ(loaded(with_pandas(lists, "0,2")).categories.at(0).feature, 0u)
      << "the training parameter decides";
  EXPECT_TRUE(loaded(with_pandas("null")).categories.empty());
  EXPECT_TRUE(loaded(with_pandas("[]")).categories.empty());
  EXPECT_TRUE(loaded(with_pandas(R"([["a"]])")).categories.empty()) << "of which feature is not known";
  EXPECT_TRUE(loaded(with_pandas(lists, "2,2")).categories.empty());
  EXPECT_TRUE(loaded(with_pandas(lists, "name:a,b")).categories.empty());
  EXPECT_TRUE(loaded(with_pandas(lists) + "more\n").categories.empty()) << "it is not the last line";
}

TEST(LightgbmLoad, RefusesDamagedCategoryNames) {
  const std::string place = "line 59: ";
  const std::pair<const char*, std::string> cases[] = {
      {R"([["a", "a"], []])", "pandas_categorical[0]: two categories of feature 1 have the name \"a\""},
      {R"([["1", 1], []])", "pandas_categorical[0]: two categories of feature 1 have the name \"1\""},
      {R"({"a": 1})",
       "pandas_categorical: expected null, or a list of lists of texts, numbers and booleans; found an object"},
      {"[1]",
       "pandas_categorical: expected null, or a list of lists of texts, numbers and booleans; found no array"},
      {"[[[1]]]",
       "pandas_categorical[0]: expected null, or a list of lists of texts, numbers and booleans; found an array"},
      {"[[null]]",
       "pandas_categorical[0]: expected null, or a list of lists of texts, numbers and booleans; found null"},
  };
  for (const auto& [lists, sentence] : cases)
    EXPECT_EQ(load_text(with_pandas(lists)).error().text(), place + sentence);
  // Many equal names are refused before all of them are stored.
  std::string equal = "[[1";
  for (int i = 0; i < 5000; ++i) equal += ",1";
  EXPECT_EQ(
      load_text(with_pandas(equal + "]]")).error().text(),
      place +
          "pandas_categorical[0][1023]: expected null, or a list of lists of texts, numbers and booleans; "
          "found a name twice");
  for (const char* const cut : {"", "[", "[[\"a\"", "[[1,]]", "[[1e999]]"}) {
    const Result<Model> model = load_text(with_pandas(cut));
    ASSERT_FALSE(model.ok()) << cut;
    EXPECT_TRUE(model.error().where.starts_with(place)) << model.error().text();
  }
}

/// Before 2.2, a file has no line "end of trees", and an empty line follows the last tree.
TEST(LightgbmLoad, FirstFormat) {
  SmallLightgbm small;
  small.version = "v2";
  const std::string text = replaced(small.text(), "end of trees\n", "\nfeature importances:\n");
  const Model model = loaded(text);
  EXPECT_EQ(model.version, "v2");
  EXPECT_EQ(model.trees.size(), 2u);
  EXPECT_FALSE(load_text(replaced(text, "feature importances", "something else")).ok());
}

TEST(LightgbmLoad, RefusesByName) {
  const auto refusal = [](const SmallLightgbm& small) { return load_text(small.text()).error().text(); };
  SmallLightgbm small;
  small.version = "v5";
  EXPECT_EQ(refusal(small), "line 2: version: the format is v2 (LightGBM 2.0), v3 or v4, found \"v5\"");
  small = {};
  small.objective = "objective=survival\n";
  EXPECT_EQ(refusal(small), "line 7: objective \"survival\": not one that LightGBM has");
}

}  // namespace
}  // namespace forestvm::test::test_lightgbm_load
