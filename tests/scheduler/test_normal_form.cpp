// The normal form of a split, against the trainers' rule for float32 numbers: on the threshold, next to it,
// at both zeros, the infinities, denormals, LightGBM's tiny numbers and NaN.
#include "scheduler/normal_form.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/core/category_rules.hpp>

#include "support/small_models.hpp"

namespace forestvm::test::test_normal_form {
namespace {

using support::leaf;

/// A model in its normal form, and what its program does to values.
struct NormalForm {
  Model model;
  scheduler::RowRules rules;
};

/// Returns the normal form; none if the model already has it.
Result<std::optional<NormalForm>> normal_form(const Model& model) {
  if (scheduler::is_normal(model)) return std::optional<NormalForm>{};
  NormalForm normal{model, {}};
  FVM_ASSIGN(normal.rules, scheduler::normalize(normal.model));
  return std::optional(std::move(normal));
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

float above(float x) { return std::nextafter(x, std::numeric_limits<float>::infinity()); }
float below(float x) { return std::nextafter(x, -std::numeric_limits<float>::infinity()); }

/// Decides a split by LightGBM's rule, in float64.
bool goes_left(const Model& model, const Node& node, float given) {
  auto x = static_cast<double>(given);
  const bool tiny = std::abs(x) <= kTiny;
  if (node.missing == Missing::Zero && (tiny || std::isnan(x))) return node.missing_left;
  if (node.missing == Missing::Nan && std::isnan(x)) return node.missing_left;
  if (std::isnan(x) || (model.tiny_is_zero && tiny)) x = 0;
  return node.kind == NodeKind::LessEqual ? x <= node.threshold : x < node.threshold;
}

Model model_of(const Node& root, bool tiny_is_zero) {
  Model model = support::model_of({support::split(0, 0, leaf(1), leaf(2))});
  model.row_type = model.score_type = ScalarType::Float64;
  model.tiny_is_zero = tiny_is_zero;
  Node& node = model.trees[0].nodes[0];
  node.threshold = root.threshold;
  node.kind = root.kind;
  node.missing = root.missing;
  node.missing_left = root.missing_left;
  return model;
}

/// Returns thresholds on, between and beyond the float32 numbers.
std::vector<double> thresholds() {
  std::vector<double> all = {kInfinity, std::numeric_limits<double>::max(), 3.4e38, 3.5e38, 1e-300, 0x1p-150,
                             1};
  for (const float x :
       {0.0f, kDenormal, 1e-40f, 1e-35f, 1e-30f, 0.1f, 1.0f, std::numeric_limits<float>::max()})
    for (const float near : {below(x), x, above(x)}) {
      const auto wide = static_cast<double>(near);
      all.insert(all.end(), {wide, std::nextafter(wide, kInfinity), std::nextafter(wide, -kInfinity)});
    }
  const std::size_t positive = all.size();
  for (std::size_t i = 0; i < positive; ++i) all.push_back(-all[i]);
  return all;
}

std::vector<float> numbers(double threshold) {
  std::vector<float> all = {std::numeric_limits<float>::quiet_NaN()};
  const double largest = static_cast<double>(std::numeric_limits<float>::max());
  const auto at = static_cast<float>(std::min(std::max(threshold, -largest), largest));
  for (const float x : {at, 0.0f, -0.0f, kDenormal, 1e-35f, -1e-35f, 1.0f, -1.0f,
                        std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                        std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()})
    all.insert(all.end(), {below(x), x, above(x)});
  return all;
}

/// Compares each threshold with both comparisons; returns how many needed zeros to become NaN.
std::size_t compare(Missing missing, bool missing_left, bool tiny_is_zero) {
  std::size_t with_nan = 0;
  for (const double threshold : thresholds())
    for (const NodeKind kind : {NodeKind::Less, NodeKind::LessEqual}) {
      Node root;
      root.threshold = threshold;
      root.kind = kind;
      root.missing = missing;
      root.missing_left = missing_left;
      const Model model = model_of(root, tiny_is_zero);
      const auto normal = normal_form(model);
      EXPECT_TRUE(normal.ok()) << normal.error().text();
      const Node& node = (*normal)->model.trees[0].nodes[0];
      const bool nan = !(*normal)->rules.zero_missing.empty();
      EXPECT_EQ(node.kind, NodeKind::Less);
      EXPECT_EQ(node.missing, Missing::Nan);
      const auto bound = static_cast<float>(node.threshold);
      EXPECT_TRUE(static_cast<double>(bound) == node.threshold) << threshold;
      for (const float given : numbers(threshold)) {
        const bool tiny = std::abs(static_cast<double>(given)) <= kTiny;
        const float x = nan && tiny ? std::numeric_limits<float>::quiet_NaN() : given;
        const std::int32_t child = (std::isnan(x) ? node.missing_left : x < bound) ? node.left : node.right;
        EXPECT_EQ(child == 1, goes_left(model, model.trees[0].nodes[0], given))
            << given << (kind == NodeKind::Less ? " < " : " <= ") << threshold << ", bound " << bound;
      }
      with_nan += nan ? 1u : 0u;
    }
  return with_nan;
}

TEST(NormalForm, SendsEveryNumberWhereTheTrainerDoes) {
  for (const bool left : {false, true})
    for (const bool tiny_is_zero : {false, true}) {
      EXPECT_EQ(compare(Missing::Nan, left, tiny_is_zero), 0u);
      EXPECT_EQ(compare(Missing::None, left, tiny_is_zero), 0u);
      const std::size_t with_nan = compare(Missing::Zero, left, tiny_is_zero);
      EXPECT_GT(with_nan, 0u);
      EXPECT_LT(with_nan, 2 * thresholds().size());
    }
}

/// Zeros become NaN only if every split of the feature takes them as missing.
TEST(NormalForm, RefusesZerosThatAreNumbersElsewhere) {
  Node root;
  root.threshold = -1;
  root.kind = NodeKind::LessEqual;
  root.missing = Missing::Zero;
  root.missing_left = true;
  Model model = model_of(root, false);
  model.trees.push_back(model.trees[0]);
  ASSERT_TRUE(normal_form(model).ok());
  model.trees[1].nodes[0].missing = Missing::Nan;
  const auto normal = normal_form(model);
  ASSERT_FALSE(normal.ok());
  EXPECT_EQ(normal.error().where, "tree 0, node 0");
}

TEST(NormalForm, OfAModelThatHasItIsNoCopy) {
  const auto normal = normal_form(support::small_model("small"));
  ASSERT_TRUE(normal.ok());
  EXPECT_FALSE(normal->has_value());
}

/// Members of the set go right.
TEST(NormalForm, MembersOfASetOfCategoriesGoRight) {
  Node root;
  root.kind = NodeKind::Category;
  root.missing_left = false;
  Model model = model_of(root, true);
  model.trees[0].category_sets = {{{0, 3}, true, CategoryRule::AboveMinusOne}};
  const auto normal = normal_form(model);
  ASSERT_TRUE(normal.ok()) << normal.error().text();
  const Tree& tree = (*normal)->model.trees[0];
  EXPECT_EQ(tree.nodes[0].left, model.trees[0].nodes[0].right);
  EXPECT_EQ(tree.nodes[0].right, model.trees[0].nodes[0].left);
  EXPECT_TRUE(tree.nodes[0].missing_left);
  EXPECT_FALSE(tree.category_sets[0].members_left);
  EXPECT_EQ(tree.category_sets[0].codes, model.trees[0].category_sets[0].codes);
  EXPECT_EQ(tree.category_sets[0].rule, CategoryRule::AboveMinusOne);
}

/// In a model that takes tiny numbers for 0, -1e-40 is category 0 and -1e-30 has no category.
TEST(NormalForm, RefusesTinyNumbersThatAreACategoryWhereOthersAreNot) {
  Node root;
  root.kind = NodeKind::Category;
  Model model = model_of(root, true);
  model.trees[0].category_sets = {{{0, 3}, false}};
  ASSERT_FALSE(normal_form(model).ok());
  EXPECT_EQ(normal_form(model).error().where, "tree 0, node 0");
  model.trees[0].category_sets[0].codes = {3};
  EXPECT_TRUE(normal_form(model).ok());
}

/// Rows are rounded once for all splits of a feature: fractions become NaN, or infinity if some split sends them
/// another way than NaN. No comparison of numbers may stand beside them.
TEST(NormalForm, FractionsAmongWholeCategoriesBecomeOneNumber) {
  Node root;
  root.kind = NodeKind::Category;
  root.missing_left = true;
  Model model = model_of(root, false);
  model.row_type = ScalarType::Float64;
  model.trees[0].category_sets = {{{0, 3}, false, CategoryRule::Whole}};
  const auto normal = normal_form(model);
  ASSERT_TRUE(normal.ok()) << normal.error().text();
  const auto rule_of = [](const auto& form) {
    return static_cast<WideCategories>((*form)->rules.wide_features.at(0).categories);
  };
  EXPECT_EQ(rule_of(normal), WideCategories::Whole);
  Model other = model;
  other.trees[0].nodes[0].missing_left = false;
  const auto apart = normal_form(other);
  ASSERT_TRUE(apart.ok()) << apart.error().text();
  EXPECT_EQ(rule_of(apart), WideCategories::Integers);
  other.trees.push_back(support::split(0, 0.5, leaf(1), leaf(2)));
  ASSERT_FALSE(normal_form(other).ok());
  EXPECT_EQ(normal_form(other).error().where, "feature 0");
  other = model;
  other.row_type = ScalarType::Float32;
  ASSERT_FALSE(normal_form(other).ok());
  EXPECT_EQ(normal_form(other).error().where, "tree 0");
}

/// Float32 numbers need a rule, too, if they must be whole, but no bounds.
TEST(NormalForm, FeaturesOfWholeNumbersHaveARule) {
  for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64}) {
    Model model = support::model_of({support::split(1, 2, leaf(1), leaf(2))});
    model.row_type = model.score_type = type;
    model.trees[0].nodes[0].kind = NodeKind::LessEqual;
    model.whole_features = {1};
    const auto normal = normal_form(model);
    ASSERT_TRUE(normal.ok() && normal->has_value());
    EXPECT_TRUE((*normal)->model.whole_features.empty());
    const std::vector<WideFeature>& features = (*normal)->rules.wide_features;
    ASSERT_EQ(features.size(), 1u);
    EXPECT_EQ(features[0].feature, 1u);
    EXPECT_EQ(static_cast<WideCategories>(features[0].categories), WideCategories::Integers);
    EXPECT_EQ(features[0].bound_count, type == ScalarType::Float64 ? 1u : 0u);
  }
}

TEST(NormalForm, SwappedChildrenKeepTheirNumbers) {
  Node root;
  root.threshold = kInfinity;
  root.kind = NodeKind::LessEqual;
  root.missing_left = false;
  const Model model = model_of(root, true);
  const auto normal = normal_form(model);
  ASSERT_TRUE(normal.ok());
  const std::vector<Node>& nodes = (*normal)->model.trees[0].nodes;
  EXPECT_EQ(nodes[0].left, model.trees[0].nodes[0].right);
  EXPECT_TRUE(nodes[0].missing_left);
  EXPECT_EQ(nodes[1].value, model.trees[0].nodes[1].value);
}

}  // namespace
}  // namespace forestvm::test::test_normal_form
