// An XGBoost file and the Model made of it: every form of base_score, objective, DART, rounds, old files.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include <forestvm/internal/reference.hpp>

#include "small_xgboost.hpp"

namespace forestvm::test::test_xgboost_load {
namespace {

TEST(XgboostLoad, SaysWhatTheFileSaid) {
  SmallXgboost small;
  small.feature_names = {"age", "na\xc3\xafve", "x"};
  for (const std::string& text : {small.json(), small.ubj()}) {
    const Model model = loaded(text);
    EXPECT_EQ(model.format, text == small.json() ? "xgboost-json" : "xgboost-ubj");
    EXPECT_EQ(model.trainer, "xgboost");
    EXPECT_EQ(model.version, "3.2.0");
    EXPECT_EQ(model.objective, "reg:squarederror");
    EXPECT_EQ(model.num_features, 3u);
    EXPECT_EQ(model.feature_names, small.feature_names);
    EXPECT_EQ(model.base, std::vector<double>{0.5});
    EXPECT_EQ(model.round_begins, (std::vector<std::uint32_t>{0, 1, 2}));
    ASSERT_EQ(model.trees.size(), 2u);
    const std::vector<Node>& nodes = model.trees[0].nodes;
    ASSERT_EQ(nodes.size(), 3u);
    EXPECT_EQ(nodes[0].kind, NodeKind::Less);
    EXPECT_EQ(nodes[0].threshold, 0.5);
    EXPECT_TRUE(nodes[0].missing_left);
    EXPECT_EQ(nodes[0].cover, 4.0f);
    EXPECT_EQ(nodes[1].kind, NodeKind::Leaf);
    EXPECT_EQ(nodes[1].value, -1.0);
    // The second tree's right child is node 1: not adjacent in XGBoost's sense.
    EXPECT_EQ(model.trees[1].nodes[0].left, 2);
    EXPECT_EQ(model.trees[1].nodes[0].right, 1);
    EXPECT_EQ(model.trees[1].nodes[0].feature, 2u);
  }
}

TEST(XgboostLoad, OldFileOfVersion1) {
  SmallXgboost small;
  small.version = {1, 4, 0};
  small.base_score = "5E-1";
  small.num_target.reset();
  small.iteration_indptr.reset();
  small.flags_as_words = true;
  small.split_types = false;
  for (SmallTree& tree : small.trees) tree.size_leaf_vector = "0";
  const Model model = loaded(small.json());
  EXPECT_EQ(model.version, "1.4.0");
  EXPECT_EQ(model.num_outputs, 1u);
  ASSERT_EQ(model.trees.size(), 2u);
  EXPECT_TRUE(model.trees[0].nodes[0].missing_left);
  EXPECT_EQ(model.round_begins, (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(XgboostLoad, BaseScoreForms) {
  SmallXgboost small;
  for (const char* text : {"5E-1", "[5E-1]", "0.5", "[0.5]", ".5"}) {
    small.base_score = text;
    EXPECT_EQ(loaded(small.json()).base, std::vector<double>{0.5}) << text;
    EXPECT_EQ(loaded(small.ubj()).base, std::vector<double>{0.5}) << text;
  }
  small.num_target = "2";
  small.tree_info = {0, 1};
  small.iteration_indptr = {0, 2};
  small.base_score = "[1E0,-2E0]";
  EXPECT_EQ(loaded(small.json()).base, (std::vector<double>{1, -2}));
  small.base_score = "3E0";
  EXPECT_EQ(loaded(small.json()).base, (std::vector<double>{3, 3}));
  for (const char* text :
       {"", "[]", "[1", "1]", "1,", "[1,]", "[1,2,3]", "x", "1E999", "nan", "inf", "1 ", "0x10", "[1;2]"}) {
    small.base_score = text;
    const Result<Model> model = load_text(small.json());
    ASSERT_FALSE(model.ok()) << text;
    EXPECT_EQ(model.error().where, "learner.learner_model_param.base_score") << text;
  }
}

/// The margins are those of XGBoost 3.2 for constant labels, and for these base scores. Releases before it take the
/// base scores as they are, and refuse 0 and 1.
TEST(XgboostLoad, ProbabilitiesNearZeroAndOne) {
  SmallXgboost small;
  small.objective = "binary:logistic";
  small.version = {3, 2, 0};
  for (const char* text : {"0E0", "1E-7", "1E-6"}) {
    small.base_score = text;
    EXPECT_EQ(loaded(small.json()).base, std::vector<double>{-13.81551f}) << text;
  }
  for (const char* text : {"1E0", "9.9999994E-1"}) {
    small.base_score = text;
    EXPECT_EQ(loaded(small.json()).base, std::vector<double>{13.745160102844238}) << text;
  }
  for (const char* text : {"-1E-9", "1.0000001E0"}) {
    small.base_score = text;
    EXPECT_FALSE(load_text(small.json()).ok()) << text;
  }
  small.version = {3, 1, 3};
  small.base_score = "1E-7";
  EXPECT_EQ(loaded(small.json()).base, std::vector<double>{-16.118095f});
  small.base_score = "0E0";
  EXPECT_FALSE(load_text(small.json()).ok());
}

struct ObjectiveCase {
  const char* name;
  Transform transform;
  ClassRule class_rule;
  double base;  // the base for a base_score of 0.25
};

TEST(XgboostLoad, Objectives) {
  const double logit = static_cast<double>(-static_cast<float>(std::log(3.0)));
  const double log = static_cast<double>(static_cast<float>(std::log(0.25)));
  const ObjectiveCase cases[] = {
      {"reg:squarederror", Transform::Identity, ClassRule::None, 0.25},
      {"reg:linear", Transform::Identity, ClassRule::None, 0.25},
      {"reg:squaredlogerror", Transform::Identity, ClassRule::None, 0.25},
      {"reg:absoluteerror", Transform::Identity, ClassRule::None, 0.25},
      {"reg:quantileerror", Transform::Identity, ClassRule::None, 0.25},
      {"reg:pseudohubererror", Transform::Identity, ClassRule::None, 0.25},
      {"reg:logistic", Transform::Sigmoid, ClassRule::None, logit},
      {"binary:logistic", Transform::Sigmoid, ClassRule::AboveHalf, logit},
      {"binary:logitraw", Transform::Identity, ClassRule::AboveHalf, 0.25},
      {"binary:hinge", Transform::Step, ClassRule::AboveHalf, 0.25},
      {"count:poisson", Transform::Exp, ClassRule::None, log},
      {"reg:gamma", Transform::Exp, ClassRule::None, log},
      {"reg:tweedie", Transform::Exp, ClassRule::None, log},
      {"survival:cox", Transform::Exp, ClassRule::None, log},
      {"survival:aft", Transform::Exp, ClassRule::None, log},
      {"rank:pairwise", Transform::Identity, ClassRule::None, 0.25},
      {"rank:ndcg", Transform::Identity, ClassRule::None, 0.25},
      {"rank:map", Transform::Identity, ClassRule::None, 0.25},
      {"reg:expectileerror", Transform::Identity, ClassRule::None, 0.25},
  };
  SmallXgboost small;
  small.base_score = "[2.5E-1]";
  for (const ObjectiveCase& row : cases) {
    small.objective = row.name;
    const Model model = loaded(small.ubj());
    EXPECT_EQ(model.objective, row.name);
    EXPECT_EQ(model.transform, row.transform) << row.name;
    EXPECT_EQ(model.class_rule, row.class_rule) << row.name;
    EXPECT_EQ(model.base, std::vector<double>{row.base}) << row.name;
  }
}

TEST(XgboostLoad, UnknownObjectivesAreRefused) {
  SmallXgboost small;
  small.objective = "my:own";
  const Result<Model> model = load_text(small.json());
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(
      model.error().text(),
      "learner.objective.name: \"my:own\" is no objective of XGBoost 1.0 to 3.4: what its scores mean is not known");
}

TEST(XgboostLoad, QuantilesAreSortedSince34) {
  SmallXgboost small;
  small.objective = "reg:quantileerror";
  small.version = {3, 4, 0};
  EXPECT_EQ(loaded(small.json()).transform, Transform::Identity) << "one quantile";
  small.num_target = "2";
  small.tree_info = {0, 1};
  small.iteration_indptr = {0, 2};
  EXPECT_EQ(loaded(small.json()).transform, Transform::Sorted);
  small.version = {3, 3, 0};
  EXPECT_EQ(loaded(small.json()).transform, Transform::Identity);
}

/// The margins are those of XGBoost 3.4.1.
TEST(XgboostLoad, ExpectilesAreSteps) {
  SmallXgboost small;
  small.objective = "reg:expectileerror";
  small.version = {3, 4, 1};
  small.num_target = "2";
  small.tree_info = {0, 1};
  small.iteration_indptr = {0, 2};
  for (const auto& [text, step] : {std::pair{"[0E0,0E0]", -13.81551f},
                                   {"[1E0,2E0]", 0.5413233f},
                                   {"[0E0,1E-5]", -11.618282f},
                                   {"[0E0,5E1]", 50.0f},
                                   {"[0E0,1E-3]", -6.908256f},
                                   {"[5E0,3E0]", -13.81551f}}) {
    small.base_score = text;
    const Model model = loaded(small.json());
    EXPECT_EQ(model.transform, Transform::SoftplusSteps);
    EXPECT_EQ(static_cast<float>(model.base[1]), step) << text;
  }
}

TEST(XgboostLoad, WhatReleasesChanged) {
  SmallXgboost small;
  small.objective = "binary:logitraw";
  small.base_score = "2.5E-1";
  small.version = {1, 2, 1};
  EXPECT_EQ(loaded(small.json()).base,
            std::vector<double>{static_cast<double>(-static_cast<float>(std::log(3.0)))});
  EXPECT_TRUE(loaded(small.json()).base_last);
  small.version = {1, 3, 0};
  EXPECT_EQ(loaded(small.json()).base, std::vector<double>{0.25});
  EXPECT_FALSE(loaded(small.json()).base_last);
  small.booster = "dart";
  small.weight_drop = {1, 1};
  EXPECT_TRUE(loaded(small.json()).base_last);
  small.version = {1, 4, 0};
  EXPECT_FALSE(loaded(small.json()).base_last);
}

TEST(XgboostLoad, BaseScoreOutsideTheLinksDomain) {
  SmallXgboost small;
  small.version = {3, 1, 3};  // later releases move 0 and 1 into the domain of binary:logistic
  for (const char* objective : {"binary:logistic", "count:poisson"}) {
    small.objective = objective;
    for (const char* base : {"0", "-1E0"}) {
      small.base_score = base;
      EXPECT_FALSE(load_text(small.json()).ok()) << objective << ' ' << base;
    }
  }
  small.objective = "binary:logistic";
  small.base_score = "1";
  EXPECT_FALSE(load_text(small.json()).ok());
}

TEST(XgboostLoad, ManyClassesAndTargets) {
  SmallXgboost small;
  small.objective = "multi:softprob";
  small.num_class = "2";
  small.tree_info = {0, 1};
  small.iteration_indptr.reset();
  const Model model = loaded(small.json());
  EXPECT_EQ(model.num_outputs, 2u);
  EXPECT_EQ(model.trees[1].output, 1u);
  EXPECT_EQ(model.transform, Transform::Softmax);
  EXPECT_EQ(model.class_rule, ClassRule::Argmax);
  EXPECT_EQ(model.round_begins, (std::vector<std::uint32_t>{0, 2}));
  small.objective = "multi:softmax";
  EXPECT_EQ(loaded(small.json()).transform, Transform::Argmax);
  EXPECT_EQ(loaded(small.json()).class_rule, ClassRule::Value);
  small.num_class = "0";
  EXPECT_FALSE(load_text(small.json()).ok());
}

TEST(XgboostLoad, RoundsOfParallelTrees) {
  SmallXgboost small;
  small.iteration_indptr.reset();
  small.num_parallel_tree = "2";
  EXPECT_EQ(loaded(small.json()).round_begins, (std::vector<std::uint32_t>{0, 2}));
}

TEST(XgboostLoad, Dart) {
  SmallXgboost small;
  small.booster = "dart";
  small.weight_drop = {0.25f, 1.0f};
  for (const std::string& text : {small.json(), small.ubj()}) {
    const Model model = loaded(text);
    ASSERT_EQ(model.trees.size(), 2u);
    EXPECT_EQ(model.trees[0].weight, 0.25f);
    EXPECT_EQ(model.trees[1].weight, 1.0f);
  }
  small.trees[1].left = {7, -1, -1};
  const Result<Model> model = load_text(small.json());
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().where, "learner.gradient_booster.gbtree.model.trees[1]: tree 1, node 0");
}

TEST(XgboostLoad, DeletedNodesKeepTheNumbering) {
  constexpr int deleted = 2147483647;
  SmallXgboost small;
  small.trees[0] = {{1, -1, -1, 4, -1, -1},   {3, -1, -1, 5, -1, -1},
                    {0, 0, deleted, 1, 0, 0}, {0.5f, 1.0f, 9.0f, 0.75f, 2.0f, 3.0f},
                    {0, 0, 1, 1, 0, 0},       {0, 0, 0, 0, 0, 0}};
  for (const std::string& text : {small.json(), small.ubj()}) {
    const Model model = loaded(text);
    ASSERT_EQ(model.trees[0].nodes.size(), 6u);
    EXPECT_EQ(model.trees[0].nodes[2].kind, NodeKind::Unused);
    EXPECT_EQ(model.trees[0].nodes[2].left, -1);
    EXPECT_EQ(model.trees[0].nodes[3].kind, NodeKind::Less);
  }
}

TEST(XgboostLoad, NoTrees) {
  SmallXgboost small;
  small.trees.clear();
  small.tree_info.clear();
  small.iteration_indptr = {0};
  for (const std::string& text : {small.json(), small.ubj()}) {
    const Model model = loaded(text);
    EXPECT_TRUE(model.trees.empty());
    EXPECT_EQ(model.round_begins, std::vector<std::uint32_t>{0});
  }
}

TEST(XgboostLoad, FloatsAreRoundedOnce) {
  // Halfway between two floats, plus less than a double can hold: rounding by way of double would give 1.
  const std::string text = replaced(SmallXgboost{}.json(), "-1e+00", "1.00000005960464477539062500000000001");
  EXPECT_EQ(loaded(text).trees[0].nodes[1].value, static_cast<double>(std::nextafter(1.0f, 2.0f)));
  const std::string integer = replaced(SmallXgboost{}.json(), "-1e+00", "-3");
  EXPECT_EQ(loaded(integer).trees[0].nodes[1].value, -3.0);
  const std::string large = replaced(SmallXgboost{}.json(), "-1e+00", "18446744073709551615");
  EXPECT_EQ(loaded(large).trees[0].nodes[1].value, 18446744073709551616.0);
  const std::string tiny = replaced(SmallXgboost{}.json(), "-1e+00", "1e-45");
  EXPECT_EQ(loaded(tiny).trees[0].nodes[1].value,
            static_cast<double>(std::numeric_limits<float>::denorm_min()));
  const std::string nothing = replaced(SmallXgboost{}.json(), "-1e+00", "1e-60");
  EXPECT_EQ(loaded(nothing).trees[0].nodes[1].value, 0.0);
}

/// Returns a tree with a categorical root of three codes, and below it a categorical node of one code and a
/// numerical one.
SmallXgboost categorical() {
  SmallTree tree;
  tree.left = {1, 3, 5, -1, -1, -1, -1};
  tree.right = {2, 4, 6, -1, -1, -1, -1};
  tree.feature = {1, 2, 0, 0, 0, 0, 0};
  tree.condition = {1e-45f, 1e-45f, 0.5f, 1, 2, 3, 4};
  tree.default_left = {1, 0, 1, 0, 0, 0, 0};
  tree.split_type = {1, 1, 0, 0, 0, 0, 0};
  tree.categories = {0, 3, 40, 7};
  tree.categories_nodes = {0, 1};
  tree.categories_segments = {0, 3};
  tree.categories_sizes = {3, 1};
  SmallXgboost small;
  small.trees = {tree};
  small.tree_info = {0};
  small.iteration_indptr = std::vector<int>{0, 1};
  return small;
}

TEST(XgboostLoad, CategoricalSplits) {
  for (const std::string& text : {categorical().json(), categorical().ubj()}) {
    const Tree tree = loaded(text).trees.at(0);
    ASSERT_EQ(tree.category_sets.size(), 2u);
    EXPECT_EQ(tree.category_sets[0].codes, (std::vector<std::uint32_t>{0, 3, 40}));
    EXPECT_EQ(tree.category_sets[1].codes, std::vector<std::uint32_t>{7});
    for (const CategorySet& set : tree.category_sets) {
      EXPECT_FALSE(set.members_left);
      EXPECT_EQ(set.rule, CategoryRule::WholePart);
    }
    EXPECT_EQ(tree.nodes[0].kind, NodeKind::Category);
    EXPECT_EQ(tree.nodes[0].threshold, 0);
    EXPECT_TRUE(tree.nodes[0].missing_left);
    EXPECT_EQ(tree.nodes[1].payload, 1u);
    EXPECT_FALSE(tree.nodes[1].missing_left);
    EXPECT_EQ(tree.nodes[2].kind, NodeKind::Less);
  }
}

/// The condition of a categorical split depends on the release and is not read.
TEST(XgboostLoad, TheConditionOfACategoricalSplitMeansNothing) {
  SmallXgboost small = categorical();
  small.trees[0].condition[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(loaded(small.ubj()).trees.at(0).nodes[0].kind, NodeKind::Category);
}

TEST(XgboostLoad, RefusesDamagedCategories) {
  const std::string tree = "learner.gradient_booster.model.trees[0].";
  const auto outside = [](const std::string& categories) {
    return "categories_segments[1]: tree 0, node 1: " + categories +
           " on do not lie between 3 and the end of the tree's 4";
  };
  const struct {
    const char* name;
    std::function<void(SmallTree&)> damage;
    std::string text;
  } cases[] = {
      {"no lists", [](SmallTree& t) { t.categories_nodes = t.categories_segments = t.categories_sizes = {}; },
       "categories_nodes: tree 0: 0 entries for 2 categorical splits"},
      {"a split without a set", [](SmallTree& t) { t.split_type[2] = 1; },
       "categories_nodes: tree 0: 2 entries for 3 categorical splits"},
      {"a set of a numerical split", [](SmallTree& t) { t.categories_nodes[1] = 2; },
       "categories_nodes: tree 0: node 2 is not a categorical split of the tree"},
      {"a set of a leaf", [](SmallTree& t) { t.categories_nodes[1] = 3; },
       "categories_nodes: tree 0: node 3 is not a categorical split of the tree"},
      {"a set of no node", [](SmallTree& t) { t.categories_nodes[1] = 7; },
       "categories_nodes: tree 0: node 7 is not a categorical split of the tree"},
      {"a set of a negative node", [](SmallTree& t) { t.categories_nodes[0] = -1; },
       "categories_nodes: tree 0: its nodes are not ascending"},
      {"two sets of a split", [](SmallTree& t) { t.categories_nodes[1] = 0; },
       "categories_nodes: tree 0: its nodes are not ascending"},
      {"lists of two lengths", [](SmallTree& t) { t.categories_sizes.pop_back(); },
       "categories_nodes: tree 0: 2 entries, but categories_segments has 2 and categories_sizes 1"},
      {"a set past the end", [](SmallTree& t) { t.categories_sizes[1] = 2; }, outside("2 categories from 3")},
      {"a set that begins past the end", [](SmallTree& t) { t.categories_segments[1] = 5; },
       outside("1 categories from 5")},
      {"an empty set", [](SmallTree& t) { t.categories_sizes[1] = 0; }, outside("0 categories from 3")},
      {"sets that overlap", [](SmallTree& t) { t.categories_segments[1] = 2; },
       outside("1 categories from 2")},
      {"a negative begin", [](SmallTree& t) { t.categories_segments[0] = -1; },
       "categories_segments[0]: tree 0, node 0: 3 categories from -1 on do not lie between 0 and the end of "
       "the tree's 4"},
      {"a negative code", [](SmallTree& t) { t.categories[3] = -7; },
       "categories[3]: tree 0, node 1: category -7 is negative"},
      {"a code over the limit", [](SmallTree& t) { t.categories[3] = 1 << 24; },
       "categories[3]: tree 0, node 1: category 16777216 is over the limit of 16777215"},
      {"codes out of order", [](SmallTree& t) { t.categories[1] = 41; },
       "categories[2]: tree 0, node 0: category 40 does not come after 41"},
      {"a code twice", [](SmallTree& t) { t.categories[1] = 0; },
       "categories[1]: tree 0, node 0: category 0 does not come after 0"},
      {"an unknown type", [](SmallTree& t) { t.split_type[1] = 2; },
       "split_type[1]: tree 0, node 1: unknown split type 2"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    SmallXgboost small = categorical();
    c.damage(small.trees[0]);
    for (const std::string& text : {small.json(), small.ubj()}) {
      const Result<Model> model = load_text(text);
      ASSERT_FALSE(model.ok());
      EXPECT_EQ(model.error().text(), tree + c.text);
    }
  }
}

TEST(XgboostLoad, CategoriesBeyond32BitsAreRefused) {
  const std::string json = categorical().json();
  const auto refusal = [&](const std::string& from, const std::string& to) {
    const Result<Model> model = load_text(replaced(json, from, to));
    return model.ok() ? "loaded" : model.error().text();
  };
  const std::string tree = "learner.gradient_booster.model.trees[0].";
  EXPECT_EQ(refusal(R"("categories":[0,3)", R"("categories":[0,4294967299)"),
            tree + "categories[1]: the integer 4294967299 does not fit in 32 bits");
  EXPECT_EQ(refusal(R"("categories_segments":[0,3)", R"("categories_segments":[0,9223372036854775807)"),
            tree +
                "categories_segments[1]: tree 0, node 1: 1 categories from 9223372036854775807 on do not lie "
                "between 3 and the end of the tree's 4");
  EXPECT_EQ(refusal(R"("categories_sizes":[3,1)", R"("categories_sizes":[3,9223372036854775807)"),
            tree +
                "categories_segments[1]: tree 0, node 1: 9223372036854775807 categories from 3 on do not lie "
                "between 3 and the end of the tree's 4");
}

/// Returns a model of two outputs whose trees have a vector for each leaf.
SmallXgboost with_vectors() {
  SmallXgboost small;
  small.num_target = "2";
  for (SmallTree& tree : small.trees) tree.size_leaf_vector = "2";
  small.trees[0].right = {2, 1, 0};
  small.trees[0].leaf_weights = {1, 2, 3, 4};
  small.trees[1].base_weights = {9, 9, 0.5, 0.25, 0.125, 8};
  return small;
}

TEST(XgboostLoad, VectorLeaves) {
  for (const std::string& text : {with_vectors().json(), with_vectors().ubj()}) {
    const Model model = loaded(text);
    ASSERT_EQ(model.trees.size(), 2u);
    EXPECT_EQ(model.trees[0].leaf_width, 2u);
    // Left is node 1, whose vector is the second; then both nodes of the other tree by their own rows.
    const Result<Reference> out = reference_predict(model, std::vector<float>{0, 0, 0, 1, 0, 2}, 2);
    ASSERT_TRUE(out.ok()) << out.error().text();
    EXPECT_EQ(out->raw, (std::vector<double>{0.5 + 3 + 0.125, 0.5 + 4 + 8, 0.5 + 1 + 0.5, 0.5 + 2 + 0.25}));
  }
  SmallXgboost old = with_vectors();
  old.iteration_indptr.reset();
  EXPECT_EQ(loaded(old.json()).round_begins, (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST(XgboostLoad, RefusesDamagedVectors) {
  const std::string tree = "learner.gradient_booster.model.trees[0].";
  const struct {
    const char* name;
    std::function<void(SmallTree&)> damage;
    std::string text;
  } cases[] = {
      {"a vector that is not there", [](SmallTree& t) { t.right[1] = 2; },
       tree + "right_children[1]: tree 0, node 1: vector 2 does not exist: the tree has 2"},
      {"a negative vector", [](SmallTree& t) { t.right[1] = -1; },
       tree + "right_children[1]: tree 0, node 1: vector -1 does not exist: the tree has 2"},
      {"a vector for two leaves", [](SmallTree& t) { t.right[1] = 0; },
       tree + "right_children[2]: tree 0, node 2: vector 0 belongs to two leaves"},
      {"half a vector", [](SmallTree& t) { t.leaf_weights.pop_back(); },
       tree + "leaf_weights: tree 0: 3 entries for leaves of 2 values"},
      {"no vectors", [](SmallTree& t) { t.leaf_weights.clear(); },
       tree + "base_weights: tree 0: 3 entries for leaves of 2 values"},
      {"vectors in a tree without", [](SmallTree& t) { t.size_leaf_vector = "1"; },
       tree + "leaf_weights: tree 0: vectors in a tree with one value per leaf"},
      {"wider than the model",
       [](SmallTree& t) {
         t.size_leaf_vector = "4";
         t.right[1] = 0;
         t.right[2] = 0;
       },
       tree + "right_children[2]: tree 0, node 2: vector 0 belongs to two leaves"},
      {"a negative width", [](SmallTree& t) { t.size_leaf_vector = "-1"; },
       tree + "tree_param.size_leaf_vector: tree 0: a negative size"},
      {"a width beyond 31 bits", [](SmallTree& t) { t.size_leaf_vector = "4294967298"; },
       tree + "tree_param.size_leaf_vector: tree 0: 4294967298 values per leaf"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    SmallXgboost small = with_vectors();
    c.damage(small.trees[0]);
    const Result<Model> model = load_text(small.json());
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().text(), c.text);
  }
  SmallXgboost single = with_vectors();
  single.num_target = "1";
  EXPECT_EQ(load_text(single.json()).error().text(),
            "learner.gradient_booster.model.trees[0]: tree 0: leaves of 2 values for 1 outputs");
}

TEST(XgboostLoad, BestRound) {
  SmallXgboost small;
  EXPECT_EQ(loaded(small.json()).best_round, std::nullopt);
  for (const auto& [text, round] : {std::pair<const char*, std::optional<std::uint32_t>>{"0", 0},
                                    {"1", 1},
                                    {"2", std::nullopt},
                                    {"-1", std::nullopt},
                                    {"4294967296", std::nullopt},
                                    {"a user's text", std::nullopt}}) {
    small.best_iteration = text;
    EXPECT_EQ(loaded(small.json()).best_round, round) << text;
    EXPECT_EQ(loaded(small.ubj()).best_round, round) << text;
  }
}

TEST(XgboostLoad, CategoryNames) {
  SmallXgboost small;
  small.categories = {{{0, 3, 3, 5}, {'r', 'e', 'd', 'a', ','}}, {{0}, {}}, {{}, {30, -7}}};
  for (const std::string& text : {small.json(), small.ubj()}) {
    const std::vector<FeatureCategories> categories = loaded(text).categories;
    ASSERT_EQ(categories.size(), 2u);
    EXPECT_EQ(categories[0].feature, 0u);
    EXPECT_EQ(categories[0].names, (std::vector<std::string>{"red", "", "a,"}));
    EXPECT_EQ(categories[0].unseen, std::nullopt);
    EXPECT_EQ(categories[1].feature, 2u);
    EXPECT_EQ(categories[1].names, (std::vector<std::string>{"30", "-7"}));
  }
  // XGBoost's offsets count characters, so they cut texts with other bytes than ASCII at wrong offsets.
  small.categories[0] = {{0, 1, 3}, {-61, -68, 'a'}};
  EXPECT_EQ(loaded(small.json()).categories.size(), 1u);
  small.categories[0] = {{0, 1, 3}, {195, 188, 'a'}};
  EXPECT_EQ(loaded(small.json()).categories.size(), 1u);
}

TEST(XgboostLoad, RefusesDamagedCategoryNames) {
  const std::string list = "learner.gradient_booster.model.cats.enc";
  const std::pair<SmallCategories, std::string> cases[] = {
      {{{1, 3}, {'r', 'e', 'd'}}, list + "[0].offsets: they do not ascend from 0 to at most the 3 bytes"},
      {{{0, 2, 1}, {'r', 'e', 'd'}}, list + "[0].offsets: they do not ascend from 0 to at most the 3 bytes"},
      {{{0, 4}, {'r', 'e', 'd'}}, list + "[0].offsets: they do not ascend from 0 to at most the 3 bytes"},
      {{{0, 1}, {256}}, list + "[0].values: 256 is not a byte"},
      {{{0, 1, 2}, {'r', 'r'}}, list + "[0]: two categories of feature 0 have the name \"r\""},
      {{{}, {5, 5}}, list + "[0]: two categories of feature 0 have the name \"5\""},
  };
  SmallXgboost small;
  small.categories.resize(3);
  for (const auto& [damaged, text] : cases) {
    small.categories[0] = damaged;
    EXPECT_EQ(load_text(small.json()).error().text(), text);
  }
  small.categories[0] = {{}, std::vector<int>(5000, 7)};
  EXPECT_EQ(load_text(small.json()).error().text(),
            list + "[0]: two categories of feature 0 have the name \"7\"");
  small.categories.resize(2);
  EXPECT_EQ(load_text(small.json()).error().text(), list + ": 2 columns for 3 features");
}

TEST(XgboostLoad, NamesWhatIsNotSupported) {
  const Result<Model> model = load_text(
      R"({"learner":{"gradient_booster":{"model":{"boosted_rounds":1,"weights":[1,2]},"name":"gblinear"}}})");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(
      model.error().text(),
      "learner.gradient_booster.name: a linear model (gblinear), which has no trees: its prediction is base_score "
      "plus the sum of gradient_booster.model.weights times the features");
}

}  // namespace
}  // namespace forestvm::test::test_xgboost_load
