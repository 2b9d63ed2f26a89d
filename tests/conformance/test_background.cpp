// Contributions against a background: programs and the reference against all coalitions of features, programs against
// the reference, equal bits for every target and batch, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/background.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/reference.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>

#include "explained_forest.hpp"
#include "support/model_folders.hpp"
#include "support/nightly.hpp"
#include "support/same_bits.hpp"
#include "support/small_models.hpp"
#include "support/targets_here.hpp"

namespace forestvm::test::test_background {
namespace {

/// Compiles a model with a background.
Result<Program> compared(const Model& model, const std::vector<double>& background, bool hashed = false) {
  FVM_ASSIGN(const Schedule schedule, schedule_by_name(model, "auto"));
  FVM_ASSIGN(Background rows, Background::make(model, background, model.num_features, hashed));
  CompileOptions options;
  options.background = std::make_shared<const Background>(std::move(rows));
  FVM_ASSIGN(const Compiled done, compile(model, schedule, options));
  return done.program;
}

std::string refusal(const Result<Program>& program) { return program.ok() ? "" : program.error().text(); }

/// Returns what a tree adds for a row whose features in `coalition` (a bit for each) are the row's, and whose others
/// are those of a background row.
long double leaf_of(const Tree& tree, const double* row, const double* background, unsigned coalition) {
  std::size_t at = 0;
  while (tree.nodes[at].kind != NodeKind::Leaf) {
    const Node& node = tree.nodes[at];
    const double x = ((coalition >> node.feature & 1) != 0 ? row : background)[node.feature];
    bool left = std::isnan(x) ? node.missing_left : x < node.threshold;
    if (node.kind == NodeKind::Category && !std::isnan(x)) {
      const CategorySet& set = tree.category_sets[node.payload];
      const bool member = std::ranges::find(set.codes, static_cast<std::uint32_t>(x)) != set.codes.end();
      left = member == set.members_left;
    }
    at = static_cast<std::size_t>(left ? node.left : node.right);
  }
  return static_cast<long double>(tree.nodes[at].value);
}

/// Returns the contributions of rows by the definition of Shapley values.
std::vector<double> by_coalitions(const Model& model, const std::vector<double>& rows,
                                  const std::vector<double>& background) {
  const unsigned features = model.num_features, all = 1u << features;
  const std::size_t count = background.size() / features;
  const long double share = 1 / static_cast<long double>(count);
  std::vector<double> out;
  for (std::size_t row = 0; row < rows.size(); row += features)
    for (std::uint32_t k = 0; k < model.num_outputs; ++k) {
      std::vector<long double> worth(all);
      for (std::size_t other = 0; other < background.size(); other += features)
        for (unsigned coalition = 0; coalition < all; ++coalition)
          for (const Tree& tree : model.trees)
            if (tree.output == k)
              worth[coalition] +=
                  share * leaf_of(tree, rows.data() + row, background.data() + other, coalition);
      for (unsigned f = 0; f < features; ++f) {
        long double sum = 0;
        for (unsigned coalition = 0; coalition < all; ++coalition) {
          if ((coalition >> f & 1) != 0) continue;
          const auto size = static_cast<long double>(std::popcount(coalition));
          sum += std::tgamma(size + 1) * std::tgamma(static_cast<long double>(features) - size) /
                 std::tgamma(static_cast<long double>(features) + 1) *
                 (worth[coalition | 1u << f] - worth[coalition]);
        }
        out.push_back(static_cast<double>(sum));
      }
      out.push_back(static_cast<double>(worth[0] + static_cast<long double>(model.base[k])));
    }
  return out;
}

/// Returns a tree of random splits, in which features are repeated and some splits are of categories.
Tree random_tree(Dice& dice, std::uint32_t features, std::size_t depth) {
  if (depth == 0 || dice.percent(20))
    return support::leaf(static_cast<double>(static_cast<float>(dice.real() - 0.5)));
  const auto feature = static_cast<std::uint32_t>(dice.below(features));
  Tree tree =
      support::split(feature, static_cast<double>(dice.below(7)), random_tree(dice, features, depth - 1),
                     random_tree(dice, features, depth - 1), dice.percent(50));
  if (feature % 4 == 3) tree.nodes[0].kind = NodeKind::Category;
  return tree;
}

/// Gives every split of categories a set of its own.
void draw_sets(Dice& dice, Tree& tree) {
  for (Node& node : tree.nodes) {
    if (node.kind != NodeKind::Category) continue;
    node.threshold = 0;
    node.payload = static_cast<std::uint32_t>(tree.category_sets.size());
    CategorySet set;
    set.members_left = dice.percent(50);
    for (std::uint32_t code = 0; code < 8; ++code)
      if (dice.percent(40)) set.codes.push_back(code);
    tree.category_sets.push_back(std::move(set));
  }
}

std::vector<double> random_values(Dice& dice, std::size_t count) {
  std::vector<double> values(count);
  for (double& x : values)
    x = dice.percent(15) ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(dice.below(8));
  return values;
}

RowBlock block_of(const std::vector<double>& rows, std::size_t features) {
  return {rows.data(), rows.size() / features, features, RowType::Float64};
}

/// Returns the allowed error: the part of the sum of the largest leaves that the contract of contributions names.
double error_of(const Model& model) {
  return scale_of(model) * (model.score_type == ScalarType::Float64 ? 0x1p-48 : 0x1p-20);
}

TEST(Background, ContributionsAreShapleyValues) {
  std::size_t looked_up = 0, walked = 0, both = 0;
  for (const std::uint64_t seed : support::sampled(300, 100, "coalitions")) {
    Dice dice(seed);
    Model model = support::model_of({}, static_cast<std::uint32_t>(dice.from_to(1, 3)));
    model.num_features = static_cast<std::uint32_t>(dice.from_to(1, 8));
    if (dice.percent(50)) model.score_type = ScalarType::Float64;
    for (std::size_t t = dice.from_to(1, 10); t > 0; --t) {
      model.trees.push_back(random_tree(dice, model.num_features, dice.from_to(0, 7)));
      draw_sets(dice, model.trees.back());
      model.trees.back().output = static_cast<std::uint32_t>(t % model.num_outputs);
      model.round_begins.push_back(static_cast<std::uint32_t>(model.trees.size()));
    }
    const auto background = random_values(dice, dice.from_to(1, 30) * model.num_features);
    const auto rows = random_values(dice, 3 * model.num_features);
    const auto program = compared(model, background);
    ASSERT_TRUE(program.ok()) << program.error().text();
    const auto expected = by_coalitions(model, rows, background);
    const auto reference = reference_contributions_against(model, rows, background);
    ASSERT_TRUE(reference.ok());
    const std::string what = "seed " + std::to_string(seed);
    expect_near(*reference, expected, scale_of(model) * 0x1p-50, "reference, " + what);
    expect_near(contributions(*program, block_of(rows, model.num_features)), expected, error_of(model), what);
    if (HasFatalFailure()) return;
    const bool has_patterns = !program->pattern_leaves().empty();
    const bool has_walks =
        std::ranges::any_of(program->explained_trees(), [](const auto& tree) { return tree.node_count > 1; });
    looked_up += has_patterns && !has_walks;
    walked += has_walks && !has_patterns;
    both += has_patterns && has_walks;
  }
  EXPECT_GT(looked_up, 0u);
  EXPECT_GT(walked, 0u);
  EXPECT_GT(both, 0u);
}

TEST(Background, OfRandomForestsAreTheReferences) {
  for (const std::uint64_t seed : support::sampled(300, 40, "random")) {
    const Drawn forest = drawn(seed);
    const std::size_t features = forest.model.num_features, some = std::min<std::size_t>(forest.count, 4);
    Dice dice(seed);
    const std::size_t count = dice.from_to(1, forest.count);
    const std::vector<double> all(forest.rows.begin(), forest.rows.end());
    const std::vector<double> background(all.end() - static_cast<std::ptrdiff_t>(count * features),
                                         all.end());
    const std::vector<double> rows(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(some * features));
    const auto program = compared(forest.model, background);
    ASSERT_TRUE(program.ok()) << program.error().text();
    const auto reference = reference_contributions_against(forest.model, rows, background);
    ASSERT_TRUE(reference.ok()) << reference.error().text();
    const std::string what = "seed " + std::to_string(seed);
    expect_near(contributions(*program, block_of(rows, features)), *reference, tolerance_of(forest.model),
                what);
    if (HasFatalFailure()) return;
  }
}

TEST(Background, OfEveryModelAreTheReferences) {
  std::size_t compared_models = 0;
  for (const support::ModelFile& file : support::repository_models()) {
    const auto model = load_model(file.path.string());
    ASSERT_TRUE(model.ok()) << file.name << ": " << model.error().text();
    const support::Rows rows = support::read_rows(file.path, *model);
    const std::size_t features = model->num_features, count = std::min<std::size_t>(rows.count, 12);
    const std::vector<double> values(rows.values.begin(),
                                     rows.values.begin() + static_cast<std::ptrdiff_t>(count * features));
    const auto program = compared(*model, values, rows.hashed);
    if (!program.ok()) continue;  // linear leaves, or columns of several features
    const std::vector<double> first(
        values.begin(),
        values.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(count, 2) * features));
    ReferenceOptions options;
    options.hashed_rows = rows.hashed;
    const auto reference = reference_contributions_against(*model, first, values, options);
    ASSERT_TRUE(reference.ok()) << file.name << ": " << reference.error().text();
    RowBlock block = block_of(first, features);
    block.hashed = rows.hashed;
    expect_near(contributions(*program, block), *reference, tolerance_of(*model), file.name);
    if (HasFatalFailure()) return;
    ++compared_models;
  }
  EXPECT_GT(compared_models, 80u);
}

/// Returns a chain that tests each of its features twice.
Model deep_model(std::uint32_t features) {
  Tree chain = support::leaf(1);
  for (std::uint32_t f = 0; f < features; ++f)
    chain = support::split(f, 0.5, chain, support::leaf(static_cast<double>(f % 5) - 2));
  for (std::uint32_t f = 0; f < features; f += 3) chain = support::split(f, 0.25, chain, support::leaf(0.5));
  Model model = support::model_of({chain});
  model.num_features = features;
  return model;
}

TEST(Background, OfManyFeaturesOnAWay) {
  Dice dice(12);
  for (const std::size_t features : {9u, 10u, 11u, 31u, 64u})
    for (const std::size_t count : {1u, 7u, 300u}) {
      Model model = deep_model(static_cast<std::uint32_t>(features));
      if (features % 2 == 0) model.score_type = ScalarType::Float64;
      std::vector<double> values;
      for (std::size_t i = 0; i < (count + 5) * features; ++i)
        values.push_back(dice.real() < 0.9 ? 0.1 : 0.7);
      const std::vector<double> rows(values.begin(),
                                     values.begin() + static_cast<std::ptrdiff_t>(5 * features));
      const std::vector<double> background(values.begin() + static_cast<std::ptrdiff_t>(5 * features),
                                           values.end());
      const auto program = compared(model, background);
      ASSERT_TRUE(program.ok()) << program.error().text();
      const auto reference = reference_contributions_against(model, rows, background);
      ASSERT_TRUE(reference.ok());
      expect_near(contributions(*program, block_of(rows, features)), *reference, error_of(model),
                  std::to_string(features));
      if (HasFatalFailure()) return;
    }
}

TEST(Background, ContributionsHaveTheSameBitsHoweverTheyAreAskedFor) {
  for (const std::uint64_t seed : support::sampled(100, 12, "bits")) {
    const Drawn forest = drawn(seed);
    const std::size_t features = forest.model.num_features, count = forest.count;
    const std::vector<double> rows(forest.rows.begin(), forest.rows.end());
    const auto program = compared(forest.model, rows);
    ASSERT_TRUE(program.ok()) << program.error().text();
    const RowBlock block{forest.rows.data(), count, features};
    const std::vector<double> all = contributions(*program, block);
    const std::string what = "seed " + std::to_string(seed);
    for (const std::string& target : support::targets_here())
      for (const unsigned threads : {1u, 2u})
        support::expect_same_bits(contributions(*program, block, {threads, target}), all,
                                  what + ", " + target);
    std::vector<double> parts;
    for (std::size_t begin = 0, step = 1; begin < count; begin += step, step = 2 * step + 1) {
      const RowBlock some{forest.rows.data() + begin * features, std::min(step, count - begin), features};
      const auto part = contributions(*program, some);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    support::expect_same_bits(parts, all, what + ", batches");
    // Contributions add up to the raw score.
    const auto predictor = host_backend(*program);
    const auto context = (*predictor)->make_context();
    std::vector<double> raw(count * forest.model.num_outputs);
    ASSERT_TRUE((*predictor)->predict_wide(*context, block, OutputKind::Raw, raw.data()).ok());
    for (std::size_t i = 0; i < raw.size(); ++i) {
      double sum = 0;
      for (std::size_t f = 0; f <= features; ++f) sum += all[i * (features + 1) + f];
      ASSERT_NEAR(sum, raw[i], tolerance_of(forest.model)) << what << ", sum " << i;
    }
    if (HasFatalFailure()) return;
  }
}

TEST(Background, NeedsNoCovers) {
  const Model model = support::small_model("small");
  EXPECT_NE(refusal(compiled(model)), "");
  EXPECT_EQ(refusal(compared(model, {1, 2, 3, 4})), "");
}

TEST(Background, IsRefusedByName) {
  const Model model = support::small_model("small");
  EXPECT_EQ(refusal(compared(model, {})),
            "background: its shape is (0, 4), but it must be (rows, 4) with a row or more");
  const auto narrow = Background::make(model, std::vector<double>(6), 3);
  ASSERT_FALSE(narrow.ok());
  EXPECT_EQ(narrow.error().text(),
            "background: its shape is (2, 3), but it must be (rows, 4) with a row or more");
  EXPECT_FALSE(Background::make(model, std::vector<double>(6), 4).ok());
  Model linear = support::small_model("covered");
  support::make_linear(linear);
  EXPECT_NE(refusal(compared(linear, {1, 2, 3, 4})).find("linear functions"), std::string::npos);
  EXPECT_FALSE(reference_contributions_against(linear, std::vector<double>(4), std::vector<double>(4)).ok());
  EXPECT_NE(refusal(compared(deep_model(65), std::vector<double>(65))).find("more than 64 features"),
            std::string::npos);
  CompileOptions options;
  options.background = std::make_shared<const Background>(
      *Background::make(model, std::vector<double>(4), model.num_features));
  const Schedule schedule = *schedule_by_name(model, "default");
  options.interactions = true;
  const auto pairs = compile(model, schedule, options);
  ASSERT_FALSE(pairs.ok());
  EXPECT_NE(pairs.error().text().find("interactions are not computed against a background"),
            std::string::npos);
  options.interactions = false;
  const auto other = compile(deep_model(4), schedule, options);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().text().find("made for another model"), std::string::npos);
}

TEST(Background, OfTooManyWaysIsRefused) {
  // Each of many rows takes a way of its own to leaves below 40 features.
  Model model = deep_model(40);
  for (int i = 0; i < 7; ++i) model.trees.push_back(model.trees[0]);
  for (std::size_t t = 1; t < model.trees.size(); ++t)
    model.round_begins.push_back(static_cast<std::uint32_t>(t + 1));
  Dice dice(3);
  std::vector<double> background(40u * 14000u);
  for (double& x : background) x = dice.percent(50) ? 0.1 : 0.7;
  EXPECT_NE(refusal(compared(model, background)).find("14000 rows of the background; give fewer rows"),
            std::string::npos);
}

}  // namespace
}  // namespace forestvm::test::test_background
