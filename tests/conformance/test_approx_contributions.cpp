// Approximate contributions of features (Saabas): programs against XGBoost's stored answers and against slow code, bit
// for bit, for every target, batch and number of threads; against raw scores; what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/reference.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>

#include "support/model_folders.hpp"
#include "support/npy.hpp"
#include "support/same_bits.hpp"
#include "support/small_models.hpp"
#include "support/targets_here.hpp"

namespace forestvm::test::test_approx_contributions {
namespace {

Result<Program> compiled(const Model& model, const std::string& schedule = "auto") {
  FVM_ASSIGN(const Schedule chosen,
             schedule == "auto" ? schedule_by_name(model, schedule) : parse_schedule(schedule));
  CompileOptions options;
  options.approx_contributions = true;
  FVM_ASSIGN(const Compiled done, compile(model, chosen, options));
  return done.program;
}

std::vector<double> predicted(const Program& program, OutputKind kind, const RowBlock& rows,
                              const BackendOptions& options = {}, std::size_t batch = SIZE_MAX) {
  const auto predictor = host_backend(program, options);
  EXPECT_TRUE(predictor.ok()) << (predictor.ok() ? "" : predictor.error().text());
  const auto context = (*predictor)->make_context();
  const std::size_t width = output_width(program, kind);
  std::vector<double> out(rows.count * width, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t begin = 0; begin < rows.count;) {
    RowBlock some = rows;
    some.data = static_cast<const double*>(rows.data) + begin * rows.stride;
    some.count = std::min(batch, rows.count - begin);
    const auto done = (*predictor)->predict_wide(*context, some, kind, out.data() + begin * width);
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
    begin += some.count;
  }
  return out;
}

TEST(ApproxContributions, AreXgboosts) {
  const std::filesystem::path data = FORESTVM_TEST_DATA;
  for (const char* path : {"breast_cancer/model.json", "diabetes/model.json", "digits/model.ubj",
                           "margins/dart/model.json", "margins/classes/model.json"}) {
    const std::filesystem::path file = data / path;
    std::string name = std::filesystem::path(path).parent_path().string();
    std::replace(name.begin(), name.end(), '/', '_');
    const auto model = load_model(file.string());
    ASSERT_TRUE(model.ok()) << model.error().text();
    const std::vector<double> expected =
        support::read_numbers((data / "contributions" / (name + ".approx.npy")).string());
    const support::Rows rows = support::read_rows(file, *model);
    const std::size_t count = expected.size() / (model->num_features + 1u) / model->num_outputs;
    const RowBlock block{rows.values.data(), count, model->num_features, RowType::Float64};
    const auto program = compiled(*model);
    ASSERT_TRUE(program.ok()) << program.error().text();
    support::expect_same_bits(predicted(*program, OutputKind::ApproxContributions, block), expected, name);
  }
}

/// Returns the mean of the leaves below a node for an output, as XGBoost computes it.
template <class Score>
Score mean(const Tree& tree, std::size_t n, std::size_t k) {
  const Node& node = tree.nodes[n];
  if (node.kind == NodeKind::Leaf)
    return static_cast<Score>(tree.leaf_width == 1
                                  ? node.value
                                  : tree.leaf_vectors[std::size_t{node.payload} * tree.leaf_width + k]);
  const auto left = static_cast<std::size_t>(node.left), right = static_cast<std::size_t>(node.right);
  const Score a = mean<Score>(tree, left, k), b = mean<Score>(tree, right, k);
  if (node.cover == 0) return (a + b) / 2;
  const Score first = a * static_cast<Score>(tree.nodes[left].cover);
  const Score second = b * static_cast<Score>(tree.nodes[right].cover);
  return (first + second) / static_cast<Score>(node.cover);
}

/// Returns the nodes on the way to a node, the root first.
std::vector<std::size_t> way_to(const Tree& tree, std::size_t n) {
  std::vector<std::size_t> way{n};
  while (way.back() != 0)
    for (std::size_t parent = 0; parent < tree.nodes.size(); ++parent) {
      const Node& node = tree.nodes[parent];
      if (node.kind == NodeKind::Leaf) continue;
      if (static_cast<std::size_t>(node.left) != way.back() &&
          static_cast<std::size_t>(node.right) != way.back())
        continue;
      way.push_back(parent);
      break;
    }
  std::reverse(way.begin(), way.end());
  return way;
}

/// Computes the contributions of rows node by node, with XGBoost's roundings.
template <class Score>
std::vector<double> slow(const Model& model, const Reference& reference, std::size_t count) {
  const std::size_t terms = model.num_features + std::size_t{1};
  std::vector<double> out;
  for (std::size_t row = 0; row < count; ++row) {
    std::vector<Score> sums(terms * model.num_outputs);
    for (std::size_t t = 0; t < model.trees.size(); ++t) {
      const Tree& tree = model.trees[t];
      std::size_t leaf = 0;
      while (tree.nodes[leaf].kind != NodeKind::Leaf ||
             leaf_number(tree, leaf) != reference.leaf[row * reference.leaf_width + t])
        ++leaf;
      const std::vector<std::size_t> way = way_to(tree, leaf);
      for (std::size_t k = 0; k < tree.leaf_width; ++k) {
        std::vector<Score> of_tree(terms);
        of_tree.back() = mean<Score>(tree, 0, k);
        for (std::size_t i = 1; i < way.size(); ++i)
          of_tree[tree.nodes[way[i - 1]].feature] +=
              mean<Score>(tree, way[i], k) - mean<Score>(tree, way[i - 1], k);
        const std::size_t output = tree.leaf_width == 1 ? tree.output : k;
        for (std::size_t f = 0; f < terms; ++f)
          sums[output * terms + f] += of_tree[f] * static_cast<Score>(tree.weight);
      }
    }
    for (std::size_t k = 0; k < model.num_outputs; ++k)
      sums[(k + 1) * terms - 1] += static_cast<Score>(model.base[k]);
    out.insert(out.end(), sums.begin(), sums.end());
  }
  return out;
}

void check_sums(const Model& model, const Program& program, const RowBlock& block,
                const std::vector<double>& parts) {
  const std::vector<double> raw = predicted(program, OutputKind::Raw, block);
  const std::size_t terms = model.num_features + std::size_t{1};
  for (std::size_t i = 0; i < raw.size(); ++i) {
    double sum = 0, size = 1;
    for (std::size_t f = 0; f < terms; ++f) {
      sum += parts[i * terms + f];
      size += std::abs(parts[i * terms + f]);
    }
    if (!std::isfinite(raw[i])) continue;
    const double rounding = model.score_type == ScalarType::Float64 ? 1e-12 : 1e-4;
    ASSERT_NEAR(sum, raw[i], rounding * size) << "sum " << i;
  }
}

TEST(ApproxContributions, OfEveryModelWithCovers) {
  std::size_t compared = 0, summed = 0;
  for (const support::ModelFile& file : support::repository_models()) {
    const auto model = load_model(file.path.string());
    if (!model.ok()) continue;  // other tests know which models are refused
    const auto program = compiled(*model);
    if (!program.ok()) continue;  // it has no covers, linear leaves, or columns of several features
    SCOPED_TRACE(file.name);
    const support::Rows rows = support::read_rows(file.path, *model);
    const std::size_t count = std::min<std::size_t>(rows.count, 70);
    const RowBlock block{rows.values.data(), count, model->num_features, RowType::Float64, 1, rows.hashed};
    const std::vector<double> all = predicted(*program, OutputKind::ApproxContributions, block);
    check_sums(*model, *program, block, all);
    ++summed;
    for (const std::string& target : support::targets_here())
      for (const std::size_t batch : {std::size_t{1}, std::size_t{23}, count})
        support::expect_same_bits(predicted(*program, OutputKind::ApproxContributions, block,
                                            {.threads = 2, .target = target}, batch),
                                  all, target);
    const auto other = compiled(*model, "tile(batch, b0, b1, 16); reorder(b0, tree, b1); parallel(b0)");
    if (other.ok())
      support::expect_same_bits(predicted(*other, OutputKind::ApproxContributions, block), all,
                                "another schedule");
    if (HasFatalFailure()) return;
    const bool by_columns = !model->lookups.empty() || !model->computed_columns.empty();
    if (model->trainer == "catboost" || by_columns || model->scale != 1)
      continue;  // roots and features differ
    const std::size_t some = std::min<std::size_t>(count, 3);
    const auto reference = reference_predict(*model, std::span(rows.values).first(some * model->num_features),
                                             some, {.hashed_rows = rows.hashed});
    ASSERT_TRUE(reference.ok());
    const std::vector<double> expected = model->score_type == ScalarType::Float32
                                             ? slow<float>(*model, *reference, some)
                                             : slow<double>(*model, *reference, some);
    const std::size_t numbers = some * output_width(*program, OutputKind::ApproxContributions);
    support::expect_same_bits({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(numbers)}, expected,
                              "slow code");
    if (HasFatalFailure()) return;
    ++compared;
  }
  EXPECT_GT(compared, 30u);
  EXPECT_GT(summed, 60u);
}

TEST(ApproxContributions, OfASmallTree) {
  Tree tree =
      support::split(0, 2, support::split(1, 1, support::leaf(1), support::leaf(3)), support::leaf(1));
  Model model = support::model_of({tree});
  support::cover(model.trees[0], 0, 10);
  const auto program = compiled(model);
  ASSERT_TRUE(program.ok()) << program.error().text();
  const std::vector<double> row{0, 5, 0, 0};
  const std::vector<double> parts = predicted(*program, OutputKind::ApproxContributions,
                                              {row.data(), 1, model.num_features, RowType::Float64});
  const Tree& covered = model.trees[0];
  const auto root = mean<float>(covered, 0, 0);
  const auto left = mean<float>(covered, static_cast<std::size_t>(covered.nodes[0].left), 0);
  EXPECT_EQ(parts[0], static_cast<double>(left - root));
  EXPECT_EQ(parts[1], static_cast<double>(3 - left));
  EXPECT_EQ(parts[model.num_features], static_cast<double>(root + static_cast<float>(model.base[0])));
}

/// Returns a tree whose leaf at depth d depends on d features.
Tree deep_tree(std::uint32_t depth) {
  Tree tree = support::leaf(0.5);
  for (std::uint32_t i = 0; i < depth; ++i)
    tree = support::split(i, 1 + i % 3, tree, support::leaf(0.25 * i), i % 2 == 0);
  return tree;
}

TEST(ApproxContributions, OfLeavesWithShortAndLongLists) {
  constexpr std::uint32_t kFeatures = 60;
  std::vector<Tree> trees;
  for (std::uint32_t t = 0; t < 40; ++t) trees.push_back(deep_tree(t % 3 == 0 ? kFeatures : t % 20));
  Model model = support::model_of(trees);
  model.num_features = kFeatures;
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  const auto program = compiled(model);
  ASSERT_TRUE(program.ok()) << program.error().text();
  std::vector<double> values(std::size_t{600} * kFeatures);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * i % 11 % 5);
  const RowBlock block{values.data(), 600, kFeatures, RowType::Float64};
  const std::vector<double> all = predicted(*program, OutputKind::ApproxContributions, block);
  support::expect_same_bits(predicted(*program, OutputKind::ApproxContributions, block, {}, 1), all,
                            "row by row");
  const auto reference = reference_predict(model, std::span(values).first(5 * kFeatures), 5);
  ASSERT_TRUE(reference.ok());
  support::expect_same_bits({all.begin(), all.begin() + 5 * (kFeatures + 1)},
                            slow<float>(model, *reference, 5), "slow code");
}

/// Results of a megabyte and more go past the caches. Rows of results begin anywhere in a cache line.
TEST(ApproxContributions, AreTheSameInLargeResults) {
  constexpr std::uint32_t kFeatures = 60;
  constexpr std::size_t kRows = 5001, kFew = 100, kWidth = kFeatures + 1;
  Model model = support::model_of({deep_tree(kFeatures), deep_tree(7)});
  model.num_features = kFeatures;
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  const auto program = compiled(model);
  ASSERT_TRUE(program.ok()) << program.error().text();
  std::vector<float> values(kRows * kFeatures);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 13 % 5);
  for (const unsigned threads : {1U, 2U}) {
    const auto predictor = host_backend(*program, {.threads = threads});
    ASSERT_TRUE(predictor.ok()) << predictor.error().text();
    const auto context = (*predictor)->make_context();
    const auto predict = [&](std::size_t begin, std::size_t count, float* out) {
      const RowBlock rows{values.data() + begin * kFeatures, count, kFeatures};
      return (*predictor)->predict(*context, rows, OutputKind::ApproxContributions, out).ok();
    };
    std::vector<float> expected(kRows * kWidth + 6, -1), out(kRows * kWidth + 6, -1);
    for (std::size_t begin = 0; begin < kRows; begin += kFew)
      ASSERT_TRUE(predict(begin, std::min(kFew, kRows - begin), expected.data() + 3 + begin * kWidth));
    ASSERT_TRUE(predict(0, kRows, out.data() + 3));
    EXPECT_TRUE(out == expected) << threads << " threads";
  }
}

std::string refusal(const Model& model) {
  const auto program = compiled(model);
  return program.ok() ? "" : program.error().text();
}

TEST(ApproxContributions, AreRefusedByName) {
  Model model = support::model_of({support::split(0, 1, support::leaf(1), support::leaf(2))});
  EXPECT_NE(refusal(model).find("tree 0, node 0: the model does not say how many training rows"),
            std::string::npos)
      << refusal(model);
  model.trainer = "xgboost";
  const Model deeper = [&] {
    Model made = support::model_of(
        {support::split(0, 1, support::leaf(1), support::split(1, 1, support::leaf(2), support::leaf(3)))});
    made.trainer = "xgboost";
    return made;
  }();
  EXPECT_NE(refusal(deeper).find("tree 0, node 0: the model does not say how many training rows"),
            std::string::npos)
      << refusal(deeper);
  support::cover(model.trees[0], 0, 8);
  EXPECT_EQ(refusal(model), "");
  model.trees[0].nodes[0].cover = 0;
  EXPECT_NE(refusal(model).find("no training rows came to it"), std::string::npos) << refusal(model);
  model.trees[0].nodes[0].cover = -1;
  EXPECT_NE(refusal(model).find("a cover is negative"), std::string::npos) << refusal(model);
  const auto plain = compile(model, *parse_schedule(""));
  const auto without = check_call(plain->program, OutputKind::ApproxContributions, {});
  ASSERT_FALSE(without.ok());
  EXPECT_NE(without.error().text().find("--with approx-contributions (CompileOptions::approx_contributions"),
            std::string::npos)
      << without.error().text();
}

}  // namespace
}  // namespace forestvm::test::test_approx_contributions
