// Contributions of features: programs against all coalitions of features, against the reference, which takes them leaf
// by leaf, and against the trainers' stored answers; the same bits for every target, batch, number of threads and form
// of rows; what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/reference.hpp>

#include "random_forest.hpp"
#include "support/model_folders.hpp"
#include "support/nightly.hpp"
#include "support/npy.hpp"
#include "support/small_models.hpp"
#include "support/targets_here.hpp"

namespace forestvm::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Result<Program> compiled(const Model& model, const std::string& schedule = "auto") {
  FVM_ASSIGN(const Schedule chosen, schedule_by_name(model, schedule));
  CompileOptions options;
  options.contributions = true;
  FVM_ASSIGN(const Compiled done, compile(model, chosen, options));
  return done.program;
}

std::vector<double> contributions(const Program& program, const AnyRows& rows,
                                  const BackendOptions& options = {}) {
  const auto predictor = host_backend(program, options);
  EXPECT_TRUE(predictor.ok()) << (predictor.ok() ? "" : predictor.error().text());
  if (!predictor.ok()) return {};
  const auto context = (*predictor)->make_context();
  std::vector<double> out(row_count(rows) * output_width(program, OutputKind::Contributions), kNan);
  const auto done = (*predictor)->predict_wide(*context, rows, OutputKind::Contributions, out.data());
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
  return out;
}

/// Gives every node a cover: whole numbers that add up, sometimes zero.
void cover(Dice& dice, Tree& tree, std::size_t at, std::size_t rows) {
  Node& node = tree.nodes[at];
  node.cover = static_cast<float>(rows);
  if (node.kind == NodeKind::Leaf) return;
  const std::size_t left = dice.percent(8) ? 0 : dice.below(rows + 1);
  cover(dice, tree, static_cast<std::size_t>(node.left), left);
  cover(dice, tree, static_cast<std::size_t>(tree.nodes[at].right), rows - left);
}

/// Returns a bound on the sums of an output. The allowed error is a fraction of it.
double scale_of(const Model& model) {
  double sum = 1e-300;
  for (const double base : model.base) sum = std::max(sum, std::abs(base));
  for (const Tree& tree : model.trees) {
    double largest = 0;
    for (const Node& node : tree.nodes)
      if (node.kind == NodeKind::Leaf) largest = std::max(largest, std::abs(node.value));
    for (const double value : tree.leaf_vectors) largest = std::max(largest, std::abs(value));
    sum += largest * std::abs(static_cast<double>(tree.weight) * model.scale);
  }
  return sum;
}

double tolerance_of(const Model& model) {
  return scale_of(model) * (model.score_type == ScalarType::Float64 ? 0x1p-46 : 0x1p-20);
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i]) continue;  // infinities, too, which some base scores are
    ASSERT_NEAR(got[i], expected[i], tolerance) << what << ", number " << i << " of " << got.size();
  }
}

void expect_same_bits(const std::vector<double>& got, const std::vector<double>& expected,
                      const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint64_t>(got[i]), std::bit_cast<std::uint64_t>(expected[i]))
        << what << ", number " << i << " of " << got.size() << ": " << got[i] << " and " << expected[i];
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
    const float x = row[node.feature];
    const bool goes_left = std::isnan(x) ? node.missing_left : x < static_cast<float>(node.threshold);
    return below(goes_left ? left : right);
  }
  const auto a = static_cast<long double>(tree.nodes[left].cover),
             b = static_cast<long double>(tree.nodes[right].cover);
  const long double share = a + b == 0 ? 0.5L : a / (a + b);
  return share * below(left) + (1 - share) * below(right);
}

/// Returns the Shapley values of a row by their definition, and the mean.
std::vector<double> by_coalitions(const Model& model, const std::vector<float>& row) {
  const std::uint32_t features = model.num_features;
  std::vector<double> out(features + 1);
  std::vector<long double> worth(std::size_t{1} << features);
  for (unsigned coalition = 0; coalition < worth.size(); ++coalition)
    for (const Tree& tree : model.trees) worth[coalition] += game(model, tree, 0, row, coalition);
  for (std::uint32_t f = 0; f < features; ++f) {
    long double sum = 0;
    for (unsigned coalition = 0; coalition < worth.size(); ++coalition) {
      if ((coalition >> f & 1) != 0) continue;
      const auto others = static_cast<unsigned>(std::popcount(coalition));
      const long double weight = std::tgamma(others + 1.0L) *
                                 std::tgamma(static_cast<long double>(features - others)) /
                                 std::tgamma(features + 1.0L);
      sum += weight * (worth[coalition | 1u << f] - worth[coalition]);
    }
    out[f] = static_cast<double>(sum);
  }
  out[features] = static_cast<double>(worth[0] + static_cast<long double>(model.base[0]));
  return out;
}

/// Returns a tree of random splits, in which features are repeated, and branches may have no training rows.
Tree random_tree(Dice& dice, std::uint32_t features, std::size_t depth) {
  if (depth == 0 || dice.percent(20))
    return support::leaf(static_cast<double>(static_cast<float>(dice.real() - 0.5)));
  return support::split(static_cast<std::uint32_t>(dice.below(features)), static_cast<double>(dice.below(7)),
                        random_tree(dice, features, depth - 1), random_tree(dice, features, depth - 1),
                        dice.percent(50));
}

TEST(Contributions, AreShapleyValues) {
  for (const std::uint64_t seed : support::sampled(400, 120, "coalitions")) {
    Dice dice(seed);
    Model model = support::model_of({});
    model.num_features = static_cast<std::uint32_t>(dice.from_to(1, 8));
    if (dice.percent(50)) model.score_type = ScalarType::Float64;
    for (std::size_t t = dice.from_to(1, 20); t > 0; --t) {
      model.trees.push_back(random_tree(dice, model.num_features, dice.from_to(0, 7)));
      cover(dice, model.trees.back(), 0, dice.from_to(1, 1000));
      model.round_begins.push_back(static_cast<std::uint32_t>(model.trees.size()));
    }
    const auto program = compiled(model);
    ASSERT_TRUE(program.ok()) << program.error().text();
    for (int r = 0; r < 3; ++r) {
      std::vector<float> row(model.num_features);
      for (float& x : row)
        x = dice.percent(15) ? static_cast<float>(kNan) : static_cast<float>(dice.below(8));
      const std::vector<double> wide(row.begin(), row.end());
      const std::vector<double> expected = by_coalitions(model, row);
      const auto reference = reference_contributions(model, wide, 1);
      ASSERT_TRUE(reference.ok());
      const std::string what = "seed " + std::to_string(seed);
      expect_near(*reference, expected, scale_of(model) * 0x1p-48, "reference, " + what);
      expect_near(contributions(*program, RowBlock{row.data(), 1, row.size()}), expected, tolerance_of(model),
                  what);
    }
  }
}

/// A random forest that has contributions, and rows.
struct Drawn {
  Model model;
  std::vector<float> rows;
  std::size_t count;
};

Drawn drawn(std::uint64_t seed) {
  Dice dice(seed);
  ForestOptions options;
  options.float64 = 50;
  options.oblivious = 20;
  options.max_trees = 40;
  Model model = random_forest(dice, options);
  for (Tree& tree : model.trees) {
    cover(dice, tree, 0, dice.from_to(1, 100'000));
    for (Node& node : tree.nodes) node.value = std::clamp(node.value, -8.0, 8.0);
    for (double& value : tree.leaf_vectors) value = std::clamp(value, -8.0, 8.0);
  }
  for (double& base : model.base) base = std::clamp(base, -8.0, 8.0);
  const std::size_t count = dice.from_to(1, 200);
  std::vector<float> rows = random_rows(dice, model, count);
  return {std::move(model), std::move(rows), count};
}

TEST(Contributions, OfRandomForestsAreTheReferences) {
  for (const std::uint64_t seed : support::sampled(600, 60, "random")) {
    const Drawn forest = drawn(seed);
    const std::string what = "seed " + std::to_string(seed);
    const auto program = compiled(forest.model, seed % 2 == 0 ? "auto" : "default");
    ASSERT_TRUE(program.ok()) << program.error().text() << what;
    const std::size_t features = forest.model.num_features, some = std::min<std::size_t>(forest.count, 12);
    const std::vector<double> wide(forest.rows.begin(),
                                   forest.rows.begin() + static_cast<std::ptrdiff_t>(some * features));
    const auto reference = reference_contributions(forest.model, wide, some);
    ASSERT_TRUE(reference.ok());
    const auto got = contributions(*program, RowBlock{forest.rows.data(), some, features});
    expect_near(got, *reference, tolerance_of(forest.model), what);
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

TEST(Contributions, HaveTheSameBitsHoweverTheyAreAskedFor) {
  for (const std::uint64_t seed : support::sampled(300, 25, "bits")) {
    const Drawn forest = drawn(seed);
    const auto program = compiled(forest.model);
    ASSERT_TRUE(program.ok());
    const std::size_t features = forest.model.num_features, count = forest.count;
    const RowBlock block{forest.rows.data(), count, features};
    const std::vector<double> all = contributions(*program, block);
    const std::string what = "seed " + std::to_string(seed);
    for (const std::string& target : support::targets_here())
      for (const unsigned threads : {1u, 2u})
        expect_same_bits(contributions(*program, block, {threads, target}), all,
                         what + ", " + target + ", " + std::to_string(threads) + " threads");
    std::vector<double> parts;
    for (std::size_t begin = 0, step = 1; begin < count; begin += step, step = 2 * step + 1) {
      const std::size_t rows = std::min(step, count - begin);
      const auto part =
          contributions(*program, RowBlock{forest.rows.data() + begin * features, rows, features});
      parts.insert(parts.end(), part.begin(), part.end());
    }
    expect_same_bits(parts, all, what + ", batches");
    const std::vector<double> wide(forest.rows.begin(), forest.rows.end());
    expect_same_bits(contributions(*program, RowBlock{wide.data(), count, features, RowType::Float64}), all,
                     what + ", float64");
    std::vector<float> columns(forest.rows.size());
    for (std::size_t i = 0; i < columns.size(); ++i)
      columns[i % features * count + i / features] = forest.rows[i];
    expect_same_bits(contributions(*program, RowBlock{columns.data(), count, 1, RowType::Float32, count}),
                     all, what + ", columns");
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> numbers;
    for (std::size_t i = 0; i < forest.rows.size(); ++i) {
      numbers.push_back(static_cast<std::int32_t>(i % features));
      if (numbers.size() % features == 0) offsets.push_back(static_cast<std::int64_t>(numbers.size()));
    }
    const CsrRows sparse{count, offsets.data(), numbers.data(), forest.rows.data(), forest.rows.size()};
    expect_same_bits(contributions(*program, sparse), all, what + ", sparse");
    if (HasFatalFailure()) return;
  }
}

TEST(Contributions, OfEncodedRows) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 0; compared < 5; ++seed) {
    ASSERT_LT(seed, 100u) << "hardly any program reads codes";
    const Drawn forest = drawn(seed);
    const auto program = compiled(forest.model);
    ASSERT_TRUE(program.ok());
    const auto predictor = host_backend(*program);
    ASSERT_TRUE(predictor.ok());
    const RowBlock block{forest.rows.data(), forest.count, forest.model.num_features};
    const auto context = (*predictor)->make_context();
    std::vector<std::uint8_t> codes(coded_bytes(forest.count, (*predictor)->coded_columns()));
    const auto coded = (*predictor)->encode(*context, block, codes);
    if (!coded.ok()) continue;  // in every plan some walk reads values
    ++compared;
    expect_same_bits(contributions(*program, *coded), contributions(*program, block), "encoded");
  }
}

TEST(Contributions, Float32ResultsAreRoundedOnce) {
  const Drawn forest = drawn(5);
  const auto program = compiled(forest.model);
  ASSERT_TRUE(program.ok());
  const auto predictor = host_backend(*program);
  ASSERT_TRUE(predictor.ok());
  const RowBlock block{forest.rows.data(), forest.count, forest.model.num_features};
  const auto context = (*predictor)->make_context();
  const std::vector<double> wide = contributions(*program, block);
  std::vector<float> out(wide.size());
  ASSERT_TRUE((*predictor)->predict(*context, block, OutputKind::Contributions, out.data()).ok());
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<float>(wide[i]));
}

TEST(Contributions, OtherOutputsAreTheSameWithThem) {
  const Drawn forest = drawn(7);
  const auto with = compiled(forest.model, "default");
  const auto plain = compile(forest.model, *schedule_by_name(forest.model, "default"));
  ASSERT_TRUE(with.ok() && plain.ok());
  const RowBlock block{forest.rows.data(), forest.count, forest.model.num_features};
  const auto raw = [&](const Program& program) {
    const auto predictor = host_backend(program);
    const auto context = (*predictor)->make_context();
    std::vector<double> out(forest.count * forest.model.num_outputs);
    EXPECT_TRUE((*predictor)->predict_wide(*context, block, OutputKind::Raw, out.data()).ok());
    return out;
  };
  expect_same_bits(raw(*with), raw(plain->program), "raw");
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

TEST(Contributions, AreTheTrainersOwn) {
  const std::filesystem::path data = FORESTVM_TEST_DATA;
  std::size_t compared = 0;
  for (const support::ModelFile& file : support::repository_models()) {
    const std::filesystem::path folder = std::filesystem::relative(file.path.parent_path(), data);
    std::string name = folder.string();
    std::replace(name.begin(), name.end(), '/', '_');
    const std::filesystem::path stored = data / "contributions" / (name + ".npy");
    if (!std::filesystem::exists(stored) || file.path.extension() == ".onnx") continue;
    SCOPED_TRACE(file.name);
    const auto model = load_model(file.path.string());
    ASSERT_TRUE(model.ok()) << model.error().text();
    const std::vector<double> expected = support::read_numbers(stored.string());
    const std::size_t width = model->num_features + 1u, count = expected.size() / width / model->num_outputs;
    const support::Rows rows = support::read_rows(file.path, *model);
    const auto program = compiled(*model);
    ASSERT_TRUE(program.ok()) << program.error().text();
    const RowBlock block{rows.values.data(), count, model->num_features, RowType::Float64, 1, rows.hashed};
    // XGBoost adds all trees in float32.
    const double part = model->score_type == ScalarType::Float64 ? 1e-14 : 1e-6;
    const auto got = contributions(*program, block);
    expect_near(got, expected, part * largest_row(expected, width), file.name);
    // LightGBM's expected scores have its bits.
    for (std::size_t i = width - 1; model->trainer == "lightgbm" && i < got.size(); i += width)
      EXPECT_EQ(got[i], expected[i]) << file.name << ", number " << i;
    ++compared;
  }
  EXPECT_GE(compared, 16u);
}

TEST(Contributions, OfEveryModelWithCoversAreTheReferences) {
  std::size_t compared = 0;
  for (const support::ModelFile& file : support::repository_models()) {
    const auto model = load_model(file.path.string());
    if (!model.ok()) continue;  // other tests know which models are refused
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
    if (HasFatalFailure()) return;
    ++compared;
  }
  EXPECT_GT(compared, 60u);
}

std::string refusal(const Model& model) {
  const auto program = compiled(model, "default");
  return program.ok() ? "" : program.error().text();
}

Model covered(std::vector<Tree> trees) {
  Model model = support::model_of(std::move(trees));
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  return model;
}

TEST(Contributions, ArentThereUnlessCompiledIn) {
  const Model model = support::small_model("covered");
  const auto plain = compile(model, *schedule_by_name(model, "default"));
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(output_width(plain->program, OutputKind::Contributions), 0u);
  const auto predictor = host_backend(plain->program);
  const auto context = (*predictor)->make_context();
  const float row[4] = {};
  float out[5];
  const auto done = (*predictor)->predict(*context, RowBlock{row, 1, 4}, OutputKind::Contributions, out);
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().text().find("--with contributions"), std::string::npos) << done.error().text();
}

TEST(Contributions, AreRefusedByName) {
  EXPECT_NE(refusal(support::small_model("small"))
                .find("tree 0, node 0: the model does not say how many training rows"),
            std::string::npos)
      << refusal(support::small_model("small"));
  Model odd = support::small_model("covered");
  odd.trees[2].nodes[0].cover = 100;
  EXPECT_NE(refusal(odd).find(
                "tree 2, node 0: the covers of its children, 48 and 16, do not add up to its own, 100"),
            std::string::npos)
      << refusal(odd);
  Model linear = support::small_model("covered");
  support::make_linear(linear);
  EXPECT_NE(refusal(linear).find("linear functions"), std::string::npos) << refusal(linear);
  Tree wide = support::leaf(1);
  for (std::uint32_t f = 0; f < 65; ++f) wide = support::split(f, 0.5, wide, support::leaf(0.5));
  Model many = support::model_of({wide});
  many.num_features = 65;
  Dice dice(1);
  cover(dice, many.trees[0], 0, 1000);
  EXPECT_NE(refusal(many).find("more than 64 features"), std::string::npos) << refusal(many);
  Model lacking = covered({support::split(0, 0.5, support::leaf(kNan), support::leaf(1))});
  lacking.may_lack_answers = true;
  EXPECT_NE(refusal(lacking).find("no finite number"), std::string::npos) << refusal(lacking);
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
      expect_near(contributions(*program, RowBlock{rows.data(), 20, features}),
                  *reference_contributions(model, values, 20), tolerance_of(model), std::to_string(features));
    }
}

}  // namespace
}  // namespace forestvm::test
