// Contributions and interactions of features: programs against all coalitions of features, against the reference, which
// takes them leaf by leaf, and against the trainers' stored answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/reference.hpp>
#include <forestvm/load.hpp>

#include "explained_forest.hpp"
#include "support/model_folders.hpp"
#include "support/nightly.hpp"
#include "support/npy.hpp"
#include "support/same_bits.hpp"
#include "support/small_models.hpp"

namespace forestvm::test::test_contributions {
namespace {

/// Returns whether a number goes left at a split.
bool goes_left(const Tree& tree, const Node& node, float x) {
  if (std::isnan(x)) return node.missing_left;
  if (node.kind == NodeKind::Less) return x < static_cast<float>(node.threshold);
  const CategorySet& set = tree.category_sets[node.payload];
  const bool member = std::ranges::find(set.codes, static_cast<std::uint32_t>(x)) != set.codes.end();
  return member == set.members_left;
}

/// Returns the value of a coalition in the game whose players are features: the mean of a tree's leaves if the features
/// in `coalition` (a bit for each) are known, and rows go both ways, weighted by the covers, at splits of other
/// features.
long double game(const Model& model, const Tree& tree, std::size_t at, const std::vector<float>& row,
                 unsigned coalition) {
  const Node& node = tree.nodes[at];
  if (node.kind == NodeKind::Leaf) return static_cast<long double>(node.value);
  const auto left = static_cast<std::size_t>(node.left), right = static_cast<std::size_t>(node.right);
  const auto below = [&](std::size_t child) { return game(model, tree, child, row, coalition); };
  if ((coalition >> node.feature & 1) != 0) {
    return below(goes_left(tree, node, row[node.feature]) ? left : right);
  }
  const auto a = static_cast<long double>(tree.nodes[left].cover),
             b = static_cast<long double>(tree.nodes[right].cover);
  if (node.cover == 0) return (below(left) + below(right)) / 2;
  const auto all = static_cast<long double>(node.cover);
  return a / all * below(left) + b / all * below(right);
}

/// Returns the worth of each coalition of features for a row.
std::vector<long double> worth_of_coalitions(const Model& model, const std::vector<float>& row) {
  std::vector<long double> worth(std::size_t{1} << model.num_features);
  for (unsigned coalition = 0; coalition < worth.size(); ++coalition)
    for (const Tree& tree : model.trees) worth[coalition] += game(model, tree, 0, row, coalition);
  return worth;
}

/// Returns the Shapley value of a feature, or the Shapley interaction of two (bits of `of`), by its definition.
long double by_coalitions(const std::vector<long double>& worth, unsigned of) {
  const auto all = static_cast<unsigned>(std::bit_width(worth.size())) - 1;
  const auto players = static_cast<unsigned>(std::popcount(of));
  const unsigned one = of & (~of + 1), other = of ^ one;  // no bit if there is one feature
  long double sum = 0;
  for (unsigned coalition = 0; coalition < worth.size(); ++coalition) {
    if ((coalition & of) != 0) continue;
    const auto size = static_cast<unsigned>(std::popcount(coalition));
    const long double weight = std::tgamma(size + 1.0L) *
                               std::tgamma(static_cast<long double>(all - size - players + 1)) /
                               std::tgamma(static_cast<long double>(all - players + 2));
    long double gain = worth[coalition | of] - worth[coalition | other];
    if (other != 0) gain -= worth[coalition | one] - worth[coalition];
    sum += weight * gain;
  }
  return sum;
}

/// Returns a row's contributions and the mean.
std::vector<double> contributions_of(const Model& model, const std::vector<long double>& worth) {
  std::vector<double> out;
  for (std::uint32_t f = 0; f < model.num_features; ++f)
    out.push_back(static_cast<double>(by_coalitions(worth, 1u << f)));
  out.push_back(static_cast<double>(worth[0] + static_cast<long double>(model.base[0])));
  return out;
}

/// Returns a row's interactions, with the mean in the corner.
std::vector<double> interactions_of(const Model& model, const std::vector<long double>& worth) {
  const std::size_t features = model.num_features, width = features + 1;
  std::vector<double> out(width * width);
  for (std::size_t a = 0; a < features; ++a) {
    long double alone = by_coalitions(worth, 1u << a);
    for (std::size_t b = 0; b < features; ++b) {
      if (a == b) continue;
      const long double half = by_coalitions(worth, 1u << a | 1u << b) / 2;
      out[a * width + b] = static_cast<double>(half);
      alone -= half;
    }
    out[a * width + a] = static_cast<double>(alone);
  }
  out.back() = static_cast<double>(worth[0] + static_cast<long double>(model.base[0]));
  return out;
}

/// Returns up to 4 sets of some of the categories 0 to 7, often none.
std::vector<CategorySet> random_sets(Dice& dice) {
  std::vector<CategorySet> sets(dice.percent(50) ? 0 : dice.from_to(1, 4));
  for (CategorySet& set : sets) {
    set.members_left = dice.percent(50);
    for (std::uint32_t code = 0; code < 8; ++code)
      if (dice.percent(40)) set.codes.push_back(code);
  }
  return sets;
}

/// Returns a tree of random splits, in which features are repeated, and branches may have no training rows. If there
/// are sets of categories, some splits test one of them, also of features that other splits compare.
Tree random_tree(Dice& dice, std::uint32_t features, std::size_t depth,
                 const std::vector<CategorySet>& sets) {
  if (depth == 0 || dice.percent(20))
    return support::leaf(static_cast<double>(static_cast<float>(dice.real() - 0.5)));
  Tree tree = support::split(static_cast<std::uint32_t>(dice.below(features)),
                             static_cast<double>(dice.below(7)), random_tree(dice, features, depth - 1, sets),
                             random_tree(dice, features, depth - 1, sets), dice.percent(50));
  tree.category_sets = sets;
  if (sets.empty() || dice.percent(60)) return tree;
  tree.nodes[0].kind = NodeKind::Category;
  tree.nodes[0].threshold = 0;
  tree.nodes[0].payload = static_cast<std::uint32_t>(dice.below(sets.size()));
  return tree;
}

TEST(Contributions, AreShapleyValues) {
  for (const std::uint64_t seed : support::sampled(400, 120, "coalitions")) {
    Dice dice(seed);
    Model model = support::model_of({});
    model.num_features = static_cast<std::uint32_t>(dice.from_to(1, 8));
    if (dice.percent(50)) model.score_type = ScalarType::Float64;
    const std::vector<CategorySet> sets = random_sets(dice);
    for (std::size_t t = dice.from_to(1, 20); t > 0; --t) {
      model.trees.push_back(random_tree(dice, model.num_features, dice.from_to(0, 7), sets));
      cover(dice, model.trees.back(), 0, dice.from_to(1, 1000), seed % 4 == 3);
      model.round_begins.push_back(static_cast<std::uint32_t>(model.trees.size()));
    }
    const auto program = compiled(model);
    ASSERT_TRUE(program.ok()) << program.error().text();
    for (int r = 0; r < 3; ++r) {
      std::vector<float> row(model.num_features);
      for (float& x : row)
        x = dice.percent(15) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(dice.below(8));
      const std::vector<double> wide(row.begin(), row.end());
      const RowBlock block{row.data(), 1, row.size()};
      const std::vector<long double> worth = worth_of_coalitions(model, row);
      const std::vector<double> parts = contributions_of(model, worth), pairs = interactions_of(model, worth);
      const auto reference = reference_contributions(model, wide, 1);
      const auto reference_pairs = reference_interactions(model, wide, 1);
      ASSERT_TRUE(reference.ok() && reference_pairs.ok());
      const std::string what = "seed " + std::to_string(seed);
      // Where covers do not add up, a coalition may be worth more than the largest leaves together.
      long double most = 1;
      for (const long double one : worth)
        most = std::max(most, std::abs(one) / static_cast<long double>(scale_of(model)));
      const auto more = static_cast<double>(most);
      expect_near(*reference, parts, more * scale_of(model) * 0x1p-48, "reference, " + what);
      expect_near(contributions(*program, block), parts, more * tolerance_of(model), what);
      expect_near(*reference_pairs, pairs, more * scale_of(model) * 0x1p-47, "reference, pairs, " + what);
      expect_near(interactions(*program, block), pairs, more * tolerance_of(model), "pairs, " + what);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Contributions, OfRandomForestsAreTheReferences) {
  for (const std::uint64_t seed : support::sampled(600, 60, "random")) {
    const Drawn forest = drawn(seed, seed % 4 == 0 ? 5000 : 40);
    const std::string what = "seed " + std::to_string(seed);
    const auto program = compiled(forest.model, seed % 2 == 0 ? "auto" : "default");
    ASSERT_TRUE(program.ok()) << program.error().text() << what;
    const std::size_t features = forest.model.num_features, some = std::min<std::size_t>(forest.count, 12);
    const std::vector<double> wide(forest.rows.begin(),
                                   forest.rows.begin() + static_cast<std::ptrdiff_t>(some * features));
    const auto reference = reference_contributions(forest.model, wide, some);
    ASSERT_TRUE(reference.ok());
    const RowBlock block{forest.rows.data(), some, features};
    expect_near(contributions(*program, block), *reference, tolerance_of(forest.model), what);
    if (HasFatalFailure()) return;
    if (features > 40) continue;  // matrices would be large
    // The reference takes long, so one row has to do.
    const RowBlock one{forest.rows.data(), 1, features};
    const auto pairs = reference_interactions(forest.model, std::span(wide).first(features), 1);
    ASSERT_TRUE(pairs.ok());
    expect_near(interactions(*program, one), *pairs, tolerance_of(forest.model), "pairs, " + what);
    if (HasFatalFailure()) return;
  }
}

TEST(Contributions, AddUpToTheRawScore) {
  for (const std::uint64_t seed : support::sampled(200, 40, "sums")) {
    const Drawn forest = drawn(seed);
    const auto program = compiled(forest.model);
    ASSERT_TRUE(program.ok());
    const RowBlock rows{forest.rows.data(), forest.count, forest.model.num_features};
    const auto got = contributions(*program, rows);
    const auto predictor = host_backend(*program);
    ASSERT_TRUE(predictor.ok());
    const auto context = (*predictor)->make_context();
    std::vector<double> raw(forest.count * forest.model.num_outputs);
    ASSERT_TRUE((*predictor)->predict_wide(*context, rows, OutputKind::Raw, raw.data()).ok());
    const std::size_t width = forest.model.num_features + 1u;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      double sum = 0;
      for (std::size_t f = 0; f < width; ++f) sum += got[i * width + f];
      ASSERT_NEAR(sum, raw[i], tolerance_of(forest.model)) << "seed " << seed << ", sum " << i;
    }
  }
}

TEST(Interactions, AddUpToContributions) {
  for (const std::uint64_t seed : support::sampled(200, 40, "rows")) {
    const Drawn forest = drawn(seed);
    const auto program = compiled(forest.model);
    ASSERT_TRUE(program.ok());
    const RowBlock rows{forest.rows.data(), forest.count, forest.model.num_features};
    const auto parts = contributions(*program, rows), pairs = interactions(*program, rows);
    const std::size_t width = forest.model.num_features + 1u;
    ASSERT_EQ(pairs.size(), parts.size() * width);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::size_t begin = i / width * width * width, a = i % width;
      double sum = 0;
      for (std::size_t b = 0; b < width; ++b) {
        sum += pairs[begin + a * width + b];
        ASSERT_EQ(pairs[begin + a * width + b], pairs[begin + b * width + a]) << "seed " << seed;
      }
      ASSERT_NEAR(sum, parts[i], scale_of(forest.model) * 0x1p-48) << "seed " << seed << ", sum " << i;
    }
  }
}

/// Returns a tree that tests feature 0 four times on the way to a split of feature 1, with a share of 1e-10 each time.
Tree tree_of_tiny_shares() {
  Tree tree = support::split(1, 1, support::leaf(3), support::leaf(-2));
  for (int threshold = 1; threshold <= 4; ++threshold)
    tree = support::split(0, threshold, std::move(tree), support::leaf(threshold));
  float cover = 1e9f;
  for (std::size_t at = 0; tree.nodes[at].kind != NodeKind::Leaf; cover *= 1e-10f) {
    tree.nodes[at].cover = cover;
    tree.nodes[static_cast<std::size_t>(tree.nodes[at].right)].cover = cover;
    at = static_cast<std::size_t>(tree.nodes[at].left);
    tree.nodes[at].cover = cover * 1e-10f;
  }
  return tree;
}

TEST(Interactions, OfTinySharesAreFinite) {
  const Model model = support::model_of({tree_of_tiny_shares()});
  const auto program = compiled(model);
  ASSERT_TRUE(program.ok()) << program.error().text();
  for (const float first : {0.5f, 1.5f, 9.0f}) {
    const std::vector<float> row{first, 0.5f, 0, 0};
    const auto reference = reference_interactions(model, std::vector<double>(row.begin(), row.end()), 1);
    ASSERT_TRUE(reference.ok()) << reference.error().text();
    const RowBlock block{row.data(), 1, row.size()};
    expect_near(interactions(*program, block), *reference, tolerance_of(model), "tiny shares");
  }
}

/// Returns the largest sum of the absolute contributions of an output.
double largest_row(const std::vector<double>& contributions, std::size_t width) {
  double largest = 0;
  for (std::size_t begin = 0; begin < contributions.size(); begin += width) {
    double sum = 0;
    for (std::size_t i = begin; i < begin + width; ++i) sum += std::abs(contributions[i]);
    largest = std::max(largest, sum);
  }
  return largest;
}

/// Returns the largest distance of numbers from the reference's.
double largest_error(const std::vector<double>& numbers, const std::vector<double>& reference) {
  double largest = 0;
  for (std::size_t i = 0; i < reference.size(); ++i)
    largest = std::max(largest, std::abs(numbers[i] - reference[i]));
  return largest;
}

/// Expects numbers to be as near to the reference as the trainer's own. In float32 they may be twice as far, because
/// the trainer may be right by chance; in float64 as far as two roundings of the row's largest sum move them, where the
/// trainer's are nearer. The reference's numbers are those of the first rows.
void expect_as_near(const std::vector<double>& got, const std::vector<double>& trainers,
                    const std::vector<double>& reference, bool wide, double largest_sum,
                    const std::string& what) {
  ASSERT_EQ(got.size(), trainers.size()) << what;
  const double ours = largest_error(got, reference), theirs = largest_error(trainers, reference);
  EXPECT_LE(ours, wide ? std::max(theirs, 0x1p-51 * largest_sum) : 2 * theirs) << what;
}

TEST(Contributions, AreTheTrainersOwn) {
  const std::filesystem::path data = FORESTVM_TEST_DATA;
  std::vector<std::filesystem::path> files;
  for (const support::ModelFile& file : support::repository_models()) files.push_back(file.path);
  for (const char* name : {"dart", "classes"}) files.push_back(data / "margins" / name / "model.json");
  std::size_t compared = 0, compared_pairs = 0;
  for (const std::filesystem::path& file : files) {
    const std::filesystem::path folder = std::filesystem::relative(file.parent_path(), data);
    std::string name = folder.string();
    std::replace(name.begin(), name.end(), '/', '_');
    const std::filesystem::path stored = data / "contributions" / (name + ".npy");
    if (!std::filesystem::exists(stored) || file.extension() == ".onnx") continue;
    SCOPED_TRACE(file.string());
    const auto model = load_model(file.string());
    ASSERT_TRUE(model.ok()) << model.error().text();
    const std::vector<double> expected = support::read_numbers(stored.string());
    const std::size_t width = model->num_features + 1u, count = expected.size() / width / model->num_outputs;
    const support::Rows rows = support::read_rows(file, *model);
    const auto program = compiled(*model);
    ASSERT_TRUE(program.ok()) << program.error().text();
    const RowBlock block{rows.values.data(), count, model->num_features, RowType::Float64, 1, rows.hashed};
    // XGBoost adds all trees in float32.
    const bool wide = model->score_type == ScalarType::Float64;
    const double part = wide ? 1e-14 : 1e-6;
    const auto got = contributions(*program, block);
    expect_near(got, expected, part * largest_row(expected, width), name);
    const std::span<const double> values(rows.values.data(), count * model->num_features);
    ReferenceOptions options;
    options.hashed_rows = rows.hashed;
    expect_as_near(got, expected, *reference_contributions(*model, values, count, options), wide,
                   largest_row(expected, width), name);
    const std::filesystem::path pairs = data / "contributions" / (name + ".interactions.npy");
    if (std::filesystem::exists(pairs)) {
      ++compared_pairs;
      const auto got_pairs = interactions(*program, block),
                 stored_pairs = support::read_numbers(pairs.string());
      expect_near(got_pairs, stored_pairs, part * largest_row(expected, width), name + ", pairs");
      // The reference takes long, so one row has to do.
      expect_as_near(got_pairs, stored_pairs,
                     *reference_interactions(*model, values.first(model->num_features), 1, options), wide,
                     largest_row(expected, width), name + ", pairs");
    }
    // LightGBM's expected scores have its bits.
    for (std::size_t i = width - 1; model->trainer == "lightgbm" && i < got.size(); i += width)
      EXPECT_EQ(got[i], expected[i]) << name << ", number " << i;
    ++compared;
  }
  EXPECT_GE(compared, 18u);
  EXPECT_GE(compared_pairs, 4u);
}

TEST(Contributions, HaveXgboostsExpectedScores) {
  const std::filesystem::path data = FORESTVM_TEST_DATA;
  const auto stored = [&](const std::string& name) {
    return support::read_numbers((data / "contributions" / name).string());
  };
  const auto last = [](const std::vector<double>& numbers, std::size_t width) {
    std::vector<double> out;
    for (std::size_t i = width - 1; i < numbers.size(); i += width) out.push_back(numbers[i]);
    return out;
  };
  for (const char* file :
       {"breast_cancer/model.json", "diabetes/model.json", "digits/model.ubj", "margins/binary/model.json",
        "margins/classes/model.json", "margins/dart/model.json", "margins/vectors/model.json"}) {
    const std::filesystem::path path = data / file;
    const auto model = load_model(path.string());
    ASSERT_TRUE(model.ok()) << model.error().text();
    const auto program = compiled(*model);
    ASSERT_TRUE(program.ok()) << program.error().text();
    std::string name = std::filesystem::relative(path.parent_path(), data).string();
    std::replace(name.begin(), name.end(), '/', '_');
    const std::vector<double> row(model->num_features);
    const RowBlock block{row.data(), 1, row.size(), RowType::Float64};
    std::vector<float> parts(output_width(*program, OutputKind::Contributions));
    const auto predictor = host_backend(*program);
    const auto context = (*predictor)->make_context();
    ASSERT_TRUE((*predictor)->predict(*context, block, OutputKind::Contributions, parts.data()).ok());
    support::expect_same_bits(last({parts.begin(), parts.end()}, row.size() + 1),
                              stored(name + ".expected.npy"), name);
    if (name != "margins_classes") continue;
    const std::vector<double> margins = support::read_numbers((data / "margins/classes/margin.npy").string());
    const std::vector<double> expected = stored(name + ".margin_expected.npy");
    const std::size_t count = expected.size() / model->num_outputs;
    const support::Rows rows = support::read_rows(path, *model);
    CallOptions call;
    call.base_margin = {margins.data(), count, model->num_outputs, true};
    std::vector<float> moved(count * parts.size());
    ASSERT_TRUE((*predictor)
                    ->predict_with(*context,
                                   RowBlock{rows.values.data(), count, row.size(), RowType::Float64},
                                   OutputKind::Contributions, ResultType::Float32, call, moved.data())
                    .ok());
    support::expect_same_bits(last({moved.begin(), moved.end()}, row.size() + 1), expected, "margins");
  }
}

TEST(Contributions, OfEveryModelWithCoversAreTheReferences) {
  std::size_t compared = 0;
  for (const support::ModelFile& file : support::repository_models()) {
    const auto model = load_model(file.path.string());
    ASSERT_TRUE(model.ok()) << file.name << ": " << model.error().text();
    const auto program = compiled(*model);
    if (!program.ok()) continue;  // it has no covers, linear leaves, or columns of several features
    const support::Rows rows = support::read_rows(file.path, *model);
    const std::size_t count = std::min<std::size_t>(rows.count, 4);
    const std::vector<double> values(
        rows.values.begin(), rows.values.begin() + static_cast<std::ptrdiff_t>(count * model->num_features));
    ReferenceOptions options;
    options.hashed_rows = rows.hashed;
    const auto reference = reference_contributions(*model, values, count, options);
    ASSERT_TRUE(reference.ok()) << file.name << ": " << reference.error().text();
    const RowBlock block{values.data(), count, model->num_features, RowType::Float64, 1, rows.hashed};
    expect_near(contributions(*program, block), *reference, tolerance_of(*model), file.name);
    const auto pairs = reference_interactions(*model, values, count, options);
    ASSERT_TRUE(pairs.ok()) << file.name;
    expect_near(interactions(*program, block), *pairs, tolerance_of(*model), file.name + ", pairs");
    if (HasFatalFailure()) return;
    ++compared;
  }
  EXPECT_GT(compared, 60u);
}

TEST(Contributions, OfManyFeaturesOnAPath) {
  Dice dice(11);
  for (const std::uint32_t features : {2u, 9u, 31u, 64u})
    for (const bool wide : {false, true}) {
      Tree chain = support::leaf(1);
      for (std::uint32_t f = 0; f < features; ++f)
        chain = support::split(f, 0.5, chain, support::leaf(static_cast<double>(f % 5) - 2));
      for (std::uint32_t f = 0; f < features; f += 3)
        chain = support::split(f, 0.25, chain, support::leaf(0.5));
      Model model = support::model_of({chain});
      model.num_features = features;
      if (wide) model.score_type = ScalarType::Float64;
      for (std::size_t n = 0; n < model.trees[0].nodes.size(); ++n) model.trees[0].nodes[n].cover = 0;
      cover(dice, model.trees[0], 0, 1u << 20);
      std::vector<float> rows;
      for (std::uint32_t i = 0; i < 20 * features; ++i)
        rows.push_back(static_cast<float>(dice.real() < 0.8 ? 0.1 : 0.7));
      const std::vector<double> values(rows.begin(), rows.end());
      const auto program = compiled(model);
      ASSERT_TRUE(program.ok()) << program.error().text();
      const std::vector<double> got = contributions(*program, RowBlock{rows.data(), 20, features});
      expect_near(got, *reference_contributions(model, values, 20), tolerance_of(model),
                  std::to_string(features));
      const std::vector<double> first = contributions(*program, RowBlock{rows.data(), 1, features});
      support::expect_same_bits(first, {got.begin(), got.begin() + features + 1}, std::to_string(features));
      if (features > 31) continue;  // the reference takes minutes
      expect_near(interactions(*program, RowBlock{rows.data(), 20, features}),
                  *reference_interactions(model, values, 20), tolerance_of(model),
                  "pairs, " + std::to_string(features));
    }
}

}  // namespace
}  // namespace forestvm::test::test_contributions
