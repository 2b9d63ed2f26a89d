// See explained_forest.hpp.
#include "explained_forest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <forestvm/compile.hpp>
#include <forestvm/named_schedules.hpp>

#include "random_forest.hpp"

namespace forestvm::test {

Result<Program> compiled(const Model& model, const std::string& schedule) {
  FVM_ASSIGN(const Schedule chosen, schedule_by_name(model, schedule));
  CompileOptions options;
  options.contributions = true;
  options.interactions = model.num_features <= 300;
  FVM_ASSIGN(const Compiled done, compile(model, chosen, options));
  return done.program;
}

std::vector<double> explained(const Program& program, OutputKind kind, const AnyRows& rows,
                              const BackendOptions& options) {
  const auto predictor = host_backend(program, options);
  EXPECT_TRUE(predictor.ok()) << (predictor.ok() ? "" : predictor.error().text());
  if (!predictor.ok()) return {};
  const auto context = (*predictor)->make_context();
  std::vector<double> out(row_count(rows) * output_width(program, kind),
                          std::numeric_limits<double>::quiet_NaN());
  const auto done = (*predictor)->predict_wide(*context, rows, kind, out.data());
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
  return out;
}

std::vector<double> contributions(const Program& program, const AnyRows& rows,
                                  const BackendOptions& options) {
  return explained(program, OutputKind::Contributions, rows, options);
}

std::vector<double> interactions(const Program& program, const AnyRows& rows, const BackendOptions& options) {
  return explained(program, OutputKind::Interactions, rows, options);
}

void cover(Dice& dice, Tree& tree, std::size_t at, std::size_t rows, bool odd) {
  Node& node = tree.nodes[at];
  node.cover = static_cast<float>(rows);
  if (node.kind == NodeKind::Leaf) return;
  const std::size_t left = dice.percent(8) ? 0 : dice.below(rows + 1);
  const std::size_t right = odd && dice.percent(50) ? dice.below(rows + 1) : rows - left;
  cover(dice, tree, static_cast<std::size_t>(node.left), left, odd);
  cover(dice, tree, static_cast<std::size_t>(tree.nodes[at].right), right, odd);
}

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

Drawn drawn(std::uint64_t seed, std::uint32_t max_features) {
  Dice dice(seed);
  ForestOptions options;
  options.float64 = 50;
  options.oblivious = 20;
  options.max_trees = 40;
  options.max_features = max_features;
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

}  // namespace forestvm::test
