// check_model on Models built by hand: trees that are not trees, sizes that disagree, numbers that are not
// finite.
#include "frontend/check_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace forestvm::test::test_check_model {
namespace {

Node split(std::int32_t left, std::int32_t right) {
  Node node;
  node.kind = NodeKind::Less;
  node.left = left;
  node.right = right;
  return node;
}

Model good_model() {
  Model model;
  model.num_features = 2;
  model.base = {0};
  model.trees.resize(2);
  for (Tree& tree : model.trees) tree.nodes = {split(1, 2), Node{}, split(4, 3), Node{}, Node{}};
  model.round_begins = {0, 1, 2};
  return model;
}

TEST(CheckModel, AcceptsAGoodOne) {
  EXPECT_TRUE(frontend::check_model(good_model()).ok());
  Model infinite = good_model();
  infinite.trees[0].nodes[0].kind = NodeKind::LessEqual;
  infinite.trees[0].nodes[0].threshold = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(frontend::check_model(infinite).ok());
  Model unused = good_model();
  unused.trees[0].nodes.emplace_back().kind = NodeKind::Unused;
  EXPECT_TRUE(frontend::check_model(unused).ok());
  Model none = good_model();
  none.trees.clear();
  none.round_begins = {0};
  EXPECT_TRUE(frontend::check_model(none).ok());
}

/// Returns a model with two outputs in one tree: a vector for each leaf.
Model vector_model() {
  Model model = good_model();
  model.num_outputs = 2;
  model.base = {0, 0};
  Tree& tree = model.trees[0];
  tree.leaf_width = 2;
  tree.leaf_vectors = {1, 2, 3, 4, 5, 6};
  tree.nodes[3].payload = 1;
  tree.nodes[4].payload = 2;
  return model;
}

/// Returns a model with a linear function for each leaf of a tree.
Model linear_model() {
  Model model = good_model();
  Tree& tree = model.trees[0];
  tree.linear_leaves = {{1, {0}, {2}}, {3, {}, {}}, {4, {0, 1}, {5, 6}}};
  tree.nodes[3].payload = 1;
  tree.nodes[4].payload = 2;
  return model;
}

TEST(CheckModel, AcceptsVectorAndLinearLeaves) {
  EXPECT_TRUE(frontend::check_model(vector_model()).ok());
  EXPECT_TRUE(frontend::check_model(linear_model()).ok());
}

TEST(CheckModel, AcceptsLeavesWithoutAnAnswerWhereTheModelSaysSo) {
  for (Model model : {good_model(), vector_model()}) {
    Tree& tree = model.trees[0];
    (tree.leaf_vectors.empty() ? tree.nodes.back().value : tree.leaf_vectors[0]) = std::nan("");
    EXPECT_FALSE(frontend::check_model(model).ok());
    model.may_lack_answers = true;
    EXPECT_TRUE(frontend::check_model(model).ok());
  }
}

TEST(CheckModel, RefusesLeavesThatAreNone) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto refusal = [](Model model, const std::function<void(Model&)>& damage) {
    damage(model);
    const Result<void> checked = frontend::check_model(model);
    return checked ? "accepted" : checked.error().text();
  };
  const auto of_vectors = [&](const std::function<void(Model&)>& damage) {
    return refusal(vector_model(), damage);
  };
  const auto of_functions = [&](const std::function<void(Model&)>& damage) {
    return refusal(linear_model(), damage);
  };
  EXPECT_EQ(of_vectors([](Model& m) {
              m.trees[0].leaf_width = 3;
              m.trees[0].leaf_vectors.resize(9);
            }),
            "tree 0: leaves of 3 values for 2 outputs");
  EXPECT_EQ(of_vectors([](Model& m) { m.trees[0].leaf_vectors.pop_back(); }),
            "tree 0: the leaf vectors do not fill whole leaves");
  EXPECT_EQ(of_vectors([](Model& m) { m.trees[0].leaf_vectors.resize(4); }),
            "tree 0, node 4: the leaf has no vector");
  EXPECT_EQ(of_vectors([](Model& m) { m.trees[0].leaf_vectors[5] = inf; }),
            "tree 0: a leaf vector holds a number that is not finite, or not exact");
  EXPECT_EQ(of_vectors([](Model& m) { m.trees[0].leaf_vectors[5] = 0.1; }),
            "tree 0: a leaf vector holds a number that is not finite, or not exact");
  EXPECT_EQ(of_functions([](Model& m) { m.trees[0].linear_leaves.pop_back(); }),
            "tree 0, node 4: the leaf has no linear function");
  EXPECT_EQ(of_functions([](Model& m) { m.trees[0].linear_leaves[1].constant = inf; }),
            "tree 0: a linear leaf with a number that is not finite");
  EXPECT_EQ(of_functions([](Model& m) { m.trees[0].linear_leaves[2].coefficients[1] = -inf; }),
            "tree 0: a linear leaf with a number that is not finite");
}

/// Each damage must be reported by its own check, even if another one would notice it too.
TEST(CheckModel, SaysWhat) {
  Model empty = good_model();
  empty.trees[1].nodes.clear();
  EXPECT_EQ(frontend::check_model(empty).error().text(), "tree 1: the tree has no nodes");
  Model none = good_model();
  none.trees.clear();
  none.round_begins = {0};
  none.num_outputs = 0;
  none.base.clear();
  const Result<void> checked = frontend::check_model(none);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().text(), "model: no outputs");
}

TEST(CheckModel, SaysWhere) {
  Model model = good_model();
  model.trees[1].nodes[2].left = 9;
  EXPECT_EQ(frontend::check_model(model).error().where, "tree 1, node 2");
  const auto place = [](std::size_t tree) { return "line " + std::to_string(10 * tree); };
  EXPECT_EQ(frontend::check_model(model, place).error().where, "line 10: tree 1, node 2");
}

TEST(CheckModel, RefusesWhatIsNotAForest) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::pair<const char*, std::function<void(Model&)>> cases[] = {
      {"child past the end", [](Model& m) { m.trees[0].nodes[0].left = 5; }},
      {"negative child", [](Model& m) { m.trees[0].nodes[0].right = -1; }},
      {"child is itself", [](Model& m) { m.trees[0].nodes[2].left = 2; }},
      {"child is the root", [](Model& m) { m.trees[0].nodes[2].left = 0; }},
      {"both children the same", [](Model& m) { m.trees[0].nodes[2].left = 3; }},
      {"a ring apart from the root",
       [](Model& m) {
         m.trees[0].nodes = {Node{}, split(2, 3), split(1, 3), Node{}};
       }},
      {"an orphan", [](Model& m) { m.trees[0].nodes.emplace_back(); }},
      {"child is unused", [](Model& m) { m.trees[0].nodes[1].kind = NodeKind::Unused; }},
      {"root is unused", [](Model& m) { m.trees[0].nodes[0].kind = NodeKind::Unused; }},
      {"no nodes", [](Model& m) { m.trees[0].nodes.clear(); }},
      {"feature too large", [](Model& m) { m.trees[0].nodes[0].feature = 2; }},
      {"NaN threshold", [](Model& m) { m.trees[0].nodes[0].threshold = nan; }},
      {"infinite threshold", [](Model& m) { m.trees[0].nodes[0].threshold = -inf; }},
      {"threshold not a float", [](Model& m) { m.trees[0].nodes[0].threshold = 0.1; }},
      {"threshold beyond floats", [](Model& m) { m.trees[0].nodes[0].threshold = 1e300; }},
      {"NaN leaf", [](Model& m) { m.trees[0].nodes[1].value = nan; }},
      {"infinite cover",
       [](Model& m) { m.trees[0].nodes[1].cover = std::numeric_limits<float>::infinity(); }},
      {"NaN weight", [](Model& m) { m.trees[0].weight = std::numeric_limits<float>::quiet_NaN(); }},
      {"output too large", [](Model& m) { m.trees[0].output = 1; }},
      {"leaf width", [](Model& m) { m.trees[0].leaf_width = 3; }},
      {"leaf vectors of scalar leaves",
       [](Model& m) {
         m.trees[0].leaf_vectors = {1, 2};
       }},
      {"category without a set", [](Model& m) { m.trees[0].nodes[0].kind = NodeKind::Category; }},
      {"category codes",
       [](Model& m) {
         m.trees[0].category_sets = {{{2, 1}, false}};
       }},
      {"the same category code twice",
       [](Model& m) {
         m.trees[0].category_sets = {{{2, 2}, false}};
       }},
      {"category code over the limit",
       [](Model& m) {
         m.trees[0].category_sets = {{{1, kMaxCategories}, false}};
       }},
      {"category whose missing values are zeros",
       [](Model& m) {
         m.trees[0].category_sets = {{{1}, false}};
         m.trees[0].nodes[0].kind = NodeKind::Category;
         m.trees[0].nodes[0].missing = Missing::Zero;
       }},
      {"linear leaf without a feature",
       [](Model& m) {
         m.trees[0].linear_leaves = {{0, {7}, {1}}};
       }},
      {"linear leaf of two lengths",
       [](Model& m) {
         m.trees[0].linear_leaves = {{0, {1}, {}}};
       }},
      {"gains of some nodes", [](Model& m) { m.trees[0].gains = {1}; }},
      {"first leaf past the end", [](Model& m) { m.trees[0].first_leaf = 5; }},
      {"a leaf before the first", [](Model& m) { m.trees[0].first_leaf = 3; }},
      {"slope not finite", [](Model& m) { m.slope = nan; }},
      {"average over nothing",
       [](Model& m) {
         m.trees.clear();
         m.round_begins = {0};
         m.averaged = true;
       }},
      {"no outputs", [](Model& m) { m.num_outputs = 0; }},
      {"base of another length",
       [](Model& m) {
         m.base = {0, 0};
       }},
      {"NaN base", [](Model& m) { m.base = {nan}; }},
      {"feature names", [](Model& m) { m.feature_names = {"a"}; }},
      {"rounds that stop early",
       [](Model& m) {
         m.round_begins = {0, 1};
       }},
      {"rounds that go back",
       [](Model& m) {
         m.round_begins = {0, 2, 1, 2};
       }},
      {"no rounds", [](Model& m) { m.round_begins.clear(); }},
  };
  for (const auto& [name, damage] : cases) {
    Model model = good_model();
    damage(model);
    const Result<void> checked = frontend::check_model(model);
    ASSERT_FALSE(checked.ok()) << name;
    EXPECT_EQ(checked.error().code, ErrorCode::Refused) << name;
    EXPECT_FALSE(checked.error().where.empty()) << name;
    EXPECT_FALSE(checked.error().message.empty()) << name;
  }
}

TEST(CheckModel, AChainOfMillionsDoesNotOverflowTheStack) {
  constexpr std::int32_t splits = 2'000'000;
  Model model = good_model();
  std::vector<Node>& nodes = model.trees[0].nodes;
  nodes.clear();
  for (std::int32_t i = 0; i < splits; ++i) {
    nodes.push_back(split(2 * i + 1, 2 * i + 2));
    nodes.push_back(Node{});
  }
  nodes.push_back(Node{});
  EXPECT_TRUE(frontend::check_model(model).ok());
  nodes.back() = split(0, 1);
  EXPECT_FALSE(frontend::check_model(model).ok());
}

}  // namespace
}  // namespace forestvm::test::test_check_model
