// The reference predictor, on forests small enough to check by hand.
#include <forestvm/internal/reference.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace forestvm::test::test_reference {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Tree stump(std::uint32_t feature, double threshold, double left, double right) {
  Tree tree;
  tree.nodes.resize(3);
  tree.nodes[0].kind = NodeKind::Less;
  tree.nodes[0].feature = feature;
  tree.nodes[0].threshold = threshold;
  tree.nodes[0].left = 2;
  tree.nodes[0].right = 1;
  tree.nodes[2].value = left;
  tree.nodes[1].value = right;
  return tree;
}

Model two_stumps() {
  Model model;
  model.num_features = 2;
  model.base = {0.5};
  model.trees = {stump(0, 1, 10, 20), stump(1, 0, 100, 200)};
  model.round_begins = {0, 1, 2};
  return model;
}

Reference judged(const Model& model, const std::vector<float>& rows, const ReferenceOptions& options = {}) {
  Result<Reference> out = reference_predict(model, rows, rows.size() / model.num_features, options);
  EXPECT_TRUE(out.ok()) << out.error().text();
  return out.ok() ? std::move(out).value() : Reference{};
}

TEST(Reference, SumsFromTheBaseInTreeOrder) {
  Model model = two_stumps();
  const Reference out = judged(model, {0, -1, 1, -0.0f, std::nextafter(1.0f, 0.0f), 5});
  EXPECT_EQ(out.raw, (std::vector<double>{110.5, 220.5, 210.5}));
  EXPECT_EQ(out.leaf, (std::vector<std::int32_t>{2, 2, 1, 1, 2, 1}));
  EXPECT_EQ(out.value, out.raw);
  EXPECT_TRUE(out.label.empty());
  model.trees[0].nodes[0].kind = NodeKind::LessEqual;
  EXPECT_EQ(judged(model, {1, 0}).raw, std::vector<double>{210.5});
}

TEST(Reference, MissingGoesWhereTheNodeSays) {
  Model model = two_stumps();
  model.trees[1].nodes[0].missing_left = true;
  EXPECT_EQ(judged(model, {nan, nan}).raw, std::vector<double>{120.5});
}

TEST(Reference, DartRoundsTheProduct) {
  Model model = two_stumps();
  model.base = {1};
  model.trees.resize(1);
  model.trees[0].weight = 0.1f;
  model.trees[0].nodes[2].value = static_cast<double>(0.7f);
  const volatile float product = 0.1f * 0.7f;
  const volatile float sum = 1.0f + product;
  EXPECT_EQ(judged(model, {0, 0}).raw, std::vector<double>{static_cast<double>(sum)});
}

TEST(Reference, SumsInTheModelsType) {
  Model model = two_stumps();
  model.base = {16777216};
  model.trees[0].nodes[2].value = 1;
  model.trees[1].nodes[2].value = 1;
  EXPECT_EQ(judged(model, {0, -1}).raw, std::vector<double>{16777216});
  model.row_type = model.score_type = ScalarType::Float64;
  EXPECT_EQ(judged(model, {0, -1}).raw, std::vector<double>{16777218});
}

TEST(Reference, BaseLast) {
  Model model = two_stumps();
  model.base = {16777216};
  model.trees[0].nodes[2].value = 1;
  model.trees[1].nodes[2].value = 1;
  model.base_last = true;
  EXPECT_EQ(judged(model, {0, -1}).raw, std::vector<double>{16777218});
}

TEST(Reference, RangeOfTrees) {
  ReferenceOptions second;
  second.first_tree = 1;
  const Reference out = judged(two_stumps(), {0, -1}, second);
  EXPECT_EQ(out.raw, std::vector<double>{100.5});
  EXPECT_EQ(out.leaf, std::vector<std::int32_t>{2});
}

TEST(Reference, TransformsAndLabels) {
  Model model = two_stumps();
  model.trees.clear();
  const auto result = [&](Transform transform, ClassRule rule, std::vector<double> base) {
    model.transform = transform;
    model.class_rule = rule;
    model.num_outputs = static_cast<std::uint32_t>(base.size());
    model.base = std::move(base);
    return judged(model, {0, 0});
  };
  EXPECT_EQ(result(Transform::Sigmoid, ClassRule::AboveHalf, {0}).value, std::vector<double>{0.5});
  EXPECT_EQ(result(Transform::Sigmoid, ClassRule::AboveHalf, {0}).label, std::vector<std::int64_t>{0});
  EXPECT_EQ(result(Transform::Sigmoid, ClassRule::AboveHalf, {1, -1}).label,
            (std::vector<std::int64_t>{1, 0}));
  EXPECT_GT(result(Transform::Sigmoid, ClassRule::None, {-1000}).value[0], 0.0);
  EXPECT_EQ(result(Transform::Exp, ClassRule::None, {0}).value, std::vector<double>{1});
  EXPECT_EQ(result(Transform::Step, ClassRule::AboveHalf, {0}).value, std::vector<double>{0});
  EXPECT_EQ(result(Transform::Step, ClassRule::AboveHalf, {0.25}).label, std::vector<std::int64_t>{1});
  EXPECT_EQ(result(Transform::Identity, ClassRule::Positive, {-0.25}).label, std::vector<std::int64_t>{0});
  EXPECT_EQ(result(Transform::Identity, ClassRule::Positive, {0, 0.25}).label,
            (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(result(Transform::Softmax, ClassRule::Argmax, {3, 3, 3, 3}).value, std::vector<double>(4, 0.25));
  EXPECT_EQ(result(Transform::Softmax, ClassRule::Argmax, {1, 3, 3}).label, std::vector<std::int64_t>{1});
  EXPECT_EQ(result(Transform::Argmax, ClassRule::Value, {1, 3, 3}).value, std::vector<double>{1});
  EXPECT_EQ(result(Transform::Argmax, ClassRule::Value, {1, 3, 3}).label, std::vector<std::int64_t>{1});
  EXPECT_EQ(result(Transform::TableSoftmax, ClassRule::RawArgmax, {3, 3, 3, 3}).value,
            std::vector<double>(4, 0.25));
  EXPECT_EQ(result(Transform::TableExp, ClassRule::None, {0, -1000}).value, (std::vector<double>{1, 0}));
  EXPECT_EQ(result(Transform::WeightedMedian, ClassRule::None, {3, 1, 2, 1, 1, 1}).value,
            std::vector<double>{2});
  model.group_ends = 0b1010;
  EXPECT_EQ(result(Transform::Identity, ClassRule::ArgmaxOfEach, {1, 2, 4, 3}).label,
            (std::vector<std::int64_t>{1, 2}));
  model.group_ends = 0;
  // Probabilities are equal, scores are not.
  EXPECT_EQ(result(Transform::Softmax, ClassRule::Argmax, {0, 0x1p-60, 0}).label,
            std::vector<std::int64_t>{0});
  EXPECT_EQ(result(Transform::Softmax, ClassRule::RawArgmax, {0, 0x1p-60, 0}).label,
            std::vector<std::int64_t>{1});
  model.divisor = 3;  // and rounds these two scores to one
  EXPECT_EQ(result(Transform::Softmax, ClassRule::RawArgmax, {1.75 + 0x1p-22, 1.75 + 0x1.8p-22}).label,
            std::vector<std::int64_t>{0});
  model.divisor = 1;
  const std::vector<double> half = result(Transform::Softmax, ClassRule::None, {1.5, 0.5}).value;
  model.slope = 2;
  EXPECT_EQ(result(Transform::Softmax, ClassRule::None, {3, 1}).value, half);
  model.offset = -0.25;
  EXPECT_EQ(result(Transform::Sigmoid, ClassRule::RawAboveOffset, {-0.25}).label,
            std::vector<std::int64_t>{0});
  EXPECT_EQ(result(Transform::Sigmoid, ClassRule::RawAboveOffset, {-0.125}).label,
            std::vector<std::int64_t>{1});
}

/// Numbers that were given to XGBoost and LightGBM, and their answers.
TEST(Reference, CategoriesOfOddNumbers) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Model model = two_stumps();
  Tree& tree = model.trees[0];
  tree.nodes[0].kind = NodeKind::Category;
  const std::uint32_t feature = tree.nodes[0].feature;
  const auto goes_left = [&](float x) {
    std::vector<float> row(model.num_features, 0.0f);
    row[feature] = x;
    ReferenceOptions first;
    first.last_tree = 1;
    return judged(model, row, first).leaf[0] == tree.nodes[0].left;
  };
  // XGBoost: values in the set go right.
  tree.category_sets = {{{0, 3, 64}, false}};
  for (const float x : {0.0f, -0.0f, 0.9f, 3.0f, 3.7f, 64.0f, 64.99f}) EXPECT_FALSE(goes_left(x)) << x;
  for (const float x : {-0.5f, -1.0f, -3.0f, 1.0f, 2.999f, 4.0f, 65.0f, 0x1p24f, 0x1p31f, 0x1p32f, 3e38f,
                        infinity, -infinity})
    EXPECT_TRUE(goes_left(x)) << x;
  for (const bool left : {false, true}) {
    tree.nodes[0].missing_left = left;
    EXPECT_EQ(goes_left(nan), left);
  }
  // LightGBM: values in the set go left.
  tree.nodes[0].missing_left = false;
  tree.category_sets = {{{0, 3, 64}, true, CategoryRule::AboveMinusOne}};
  for (const float x : {0.0f, -0.0f, -0.5f, -0x1.fffffep-1f, 0.9f, 3.0f, 3.7f, 64.0f})
    EXPECT_TRUE(goes_left(x)) << x;
  for (const float x : {-1.0f, -3.0f, 1.0f, 4.0f, 65.0f, 0x1p31f, 0x1p32f, infinity, -infinity, nan})
    EXPECT_FALSE(goes_left(x)) << x;
  tree.category_sets = {{{}, true, CategoryRule::AboveMinusOne}};
  EXPECT_FALSE(goes_left(0));
}

TEST(Reference, NoRowsAndWrongRows) {
  const Reference none = judged(two_stumps(), {});
  EXPECT_TRUE(none.raw.empty());
  EXPECT_EQ(none.leaf_width, 2u);
  EXPECT_FALSE(reference_predict(two_stumps(), std::vector<float>(3), 1).ok());
}

TEST(Reference, LinearLeaves) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  Model model = two_stumps();
  model.row_type = model.score_type = ScalarType::Float64;
  model.tiny_is_zero = true;
  model.base = {0};
  model.trees.resize(1);
  model.round_begins = {0, 1};
  Tree& tree = model.trees[0];
  tree.linear_leaves = {{1, {1, 0}, {3, 2}}, {5, {}, {}}};
  tree.nodes[1].payload = 1;
  const auto raw = [&](float x, float y) { return judged(model, {x, y}).raw.at(0); };
  EXPECT_EQ(raw(0.5f, 10), 32);
  EXPECT_EQ(raw(1, nan), 5) << "a leaf that uses no features";
  EXPECT_EQ(raw(0.5f, nan), 10) << "the leaf's value";
  EXPECT_EQ(raw(0.5f, inf), static_cast<double>(inf)) << "infinities flow through";
  EXPECT_TRUE(std::isnan(raw(-inf, inf)));
  model.trees[0].linear_leaves[0].coefficients[0] = 1e40;
  EXPECT_EQ(raw(0.5f, 1e-36f), 2) << "tiny values count as 0";
  EXPECT_NE(raw(0.5f, 1e-34f), 2);
}

}  // namespace
}  // namespace forestvm::test::test_reference
