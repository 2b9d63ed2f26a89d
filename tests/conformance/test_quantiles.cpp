// Quantiles of the targets in leaves: against quantile-forest's stored answers, against sorted targets of the
// reference's leaves, equal bits for every target and batch, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/compile.hpp>
#include <forestvm/internal/reference.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/samples.hpp>

#include "explained_forest.hpp"
#include "support/npy.hpp"
#include "support/same_bits.hpp"
#include "support/small_models.hpp"
#include "support/targets_here.hpp"

namespace forestvm::test::test_quantiles {
namespace {

const std::vector<double> kQuantiles{0.5, 0, 0.1, 0.25, 1.0 / 3, 0.9, 0.999, 1};

Result<Program> sampled(const Model& model, const std::vector<double>& rows,
                        const std::vector<double>& targets) {
  FVM_ASSIGN(const Schedule schedule, schedule_by_name(model, "auto"));
  FVM_ASSIGN(Samples samples, Samples::make(model, rows, model.num_features, targets));
  CompileOptions options;
  options.samples = std::make_shared<const Samples>(std::move(samples));
  FVM_ASSIGN(const Compiled done, compile(model, schedule, options));
  return done.program;
}

std::string refusal(const Result<Program>& program) { return program.ok() ? "" : program.error().text(); }

std::vector<double> quantiles(const Program& program, const RowBlock& rows,
                              std::span<const double> asked = kQuantiles, const BackendOptions& how = {}) {
  const auto predictor = host_backend(program, how);
  if (!predictor.ok()) throw std::runtime_error(predictor.error().text());
  CallOptions options;
  options.quantiles = asked;
  std::vector<double> out(rows.count * asked.size());
  const auto context = (*predictor)->make_context();
  const auto done =
      (*predictor)
          ->predict_with(*context, rows, OutputKind::Quantile, ResultType::Float64, options, out.data());
  if (!done.ok()) throw std::runtime_error(done.error().text());
  return out;
}

/// Returns a quantile by its definition: numbers at 0 to 1, equally far from each other, and lines between them.
double by_definition(std::vector<double> numbers, double quantile) {
  if (numbers.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(numbers);
  const double place = quantile * static_cast<double>(numbers.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, numbers.size() - 1);
  return numbers[low] + (place - static_cast<double>(low)) * (numbers[high] - numbers[low]);
}

/// Returns quantiles of the targets whose rows share a leaf with a row, by the reference's leaves.
std::vector<double> by_leaves(const Model& model, const std::vector<float>& rows,
                              const std::vector<float>& training, const std::vector<double>& targets) {
  const std::size_t trees = model.trees.size(), features = model.num_features;
  const auto leaves_of = [&](const std::vector<float>& of) {
    const auto predicted = reference_predict(model, of, of.size() / features);
    if (!predicted.ok()) throw std::runtime_error(predicted.error().text());
    return predicted->leaf;
  };
  const std::vector<std::int32_t> mine = leaves_of(rows), others = leaves_of(training);
  std::vector<double> out;
  for (std::size_t row = 0; row < rows.size() / features; ++row) {
    std::vector<double> shared;
    for (std::size_t t = 0; t < trees; ++t)
      for (std::size_t i = 0; i < targets.size(); ++i)
        if (mine[row * trees + t] == others[i * trees + t]) shared.push_back(targets[i]);
    for (const double quantile : kQuantiles) out.push_back(by_definition(shared, quantile));
  }
  return out;
}

void expect_close(const std::vector<double>& got, const std::vector<double>& expected,
                  const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << what << ", number " << i << ": " << got[i];
      continue;
    }
    EXPECT_NEAR(got[i], expected[i], 1e-11 * (1 + std::abs(expected[i]))) << what << ", number " << i;
  }
}

TEST(Quantiles, AreThoseOfQuantileForest) {
  for (const std::string name : {"extra_trees", "random_forest", "whole_targets"}) {
    const std::string path = std::string(FORESTVM_TEST_DATA) + "/quantile/" + name;
    const auto model = load_model(path + ".skops");
    ASSERT_TRUE(model.ok()) << model.error().text();
    const auto read = [&](const char* ending) { return support::read_npy<double>(path + ending).data; };
    const std::vector<double> expected = read(".expected.npy");
    const auto rows = support::read_npy<float>(path + ".rows.npy").data;
    const auto program = sampled(*model, read(".X.npy"), read(".y.npy"));
    ASSERT_TRUE(program.ok()) << program.error().text();
    const std::vector<double> got = quantiles(*program, {rows.data(), rows.size() / 4, 4});
    expect_close(got, expected, name);
    if (name == "whole_targets") continue;  // targets of several rows are one target here
    for (std::size_t i = 0; i < got.size(); ++i)
      if (i % kQuantiles.size() != 1) {
        EXPECT_EQ(got[i], expected[i]) << name << ", number " << i;
      }
  }
}

TEST(Quantiles, AreThoseOfTargetsInSharedLeaves) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Drawn forest = drawn(seed, 8);
    if (forest.model.num_outputs != 1 || forest.model.trees.empty()) continue;
    forest.model.averaged = true;
    Dice dice(seed);
    const std::size_t features = forest.model.num_features, half = forest.count / 2;
    const std::vector<float> training(forest.rows.begin(),
                                      forest.rows.begin() + static_cast<std::ptrdiff_t>(half * features));
    std::vector<double> targets(half);
    for (double& target : targets) target = static_cast<double>(dice.below(seed % 2 == 0 ? 5 : 10000)) / 7;
    const auto program =
        sampled(forest.model, std::vector<double>(training.begin(), training.end()), targets);
    ASSERT_TRUE(program.ok()) << program.error().text();
    expect_close(quantiles(*program, {forest.rows.data(), forest.count, features}),
                 by_leaves(forest.model, forest.rows, training, targets), "seed " + std::to_string(seed));
  }
}

/// Returns a forest of one output with a leaf that no training row reaches, and many training rows.
struct Large {
  Model model;
  std::vector<float> rows;
  std::vector<double> training, targets;
};

Large large() {
  Large made;
  made.model = support::model_of({support::split(0, 0.5, support::leaf(1), support::leaf(2)),
                                  support::split(1, 0.25, support::leaf(3), support::leaf(4))});
  made.model.averaged = true;
  Dice dice(3);
  for (std::size_t i = 0; i < 3000; ++i) {
    for (std::uint32_t f = 0; f < made.model.num_features; ++f) made.training.push_back(dice.real() / 2.5);
    made.targets.push_back(dice.real() * 1000 - 500);
  }
  for (std::size_t i = 0; i < 300 * made.model.num_features; ++i)
    made.rows.push_back(static_cast<float>(dice.real()));
  return made;
}

TEST(Quantiles, SameBitsForBatchesThreadsAndTargets) {
  const Large forest = large();
  const auto program = sampled(forest.model, forest.training, forest.targets);
  ASSERT_TRUE(program.ok()) << program.error().text();
  const std::size_t features = forest.model.num_features, count = forest.rows.size() / features;
  const std::vector<double> all = quantiles(*program, {forest.rows.data(), count, features});
  const std::vector<float> training(forest.training.begin(), forest.training.end());
  expect_close(all, by_leaves(forest.model, forest.rows, training, forest.targets), "many targets");
  for (const std::string& target : support::targets_here())
    for (const unsigned threads : {1u, 3u})
      support::expect_same_bits(quantiles(*program, {forest.rows.data(), count, features}, kQuantiles,
                                          {.threads = threads, .target = target}),
                                all, target);
  for (std::size_t row = 0; row < count; row += 37) {
    const std::vector<double> one = quantiles(*program, {forest.rows.data() + row * features, 1, features});
    EXPECT_TRUE(
        std::equal(one.begin(), one.end(), all.begin() + static_cast<std::ptrdiff_t>(row * one.size())));
  }
}

TEST(Quantiles, AreNanWhereNoTrainingRowIs) {
  const Model model = support::model_of({support::split(0, 0.5, support::leaf(1), support::leaf(2))});
  const std::vector<double> training(std::size_t{2} * model.num_features, 0.25);
  const auto program = sampled(model, training, {1, 2});
  ASSERT_TRUE(program.ok()) << program.error().text();
  std::vector<float> rows(std::size_t{2} * model.num_features, 0.0f);
  rows[model.num_features] = 1;
  const double middle[] = {0.5};
  const std::vector<double> got = quantiles(*program, {rows.data(), 2, model.num_features}, middle);
  EXPECT_EQ(got[0], 1.5);
  EXPECT_TRUE(std::isnan(got[1]));
}

TEST(Quantiles, AreRefusedByName) {
  const Model model = support::model_of({support::split(0, 0.5, support::leaf(1), support::leaf(2))});
  const std::vector<double> row(model.num_features, 0.0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(refusal(sampled(model, row, {nan})).find("samples: the target of row 0 is not finite"),
            std::string::npos);
  EXPECT_NE(refusal(sampled(model, row, {1, 2})).find("samples: 1 rows, but 2 targets"), std::string::npos);
  EXPECT_NE(refusal(sampled(model, {}, {})).find("with a row or more"), std::string::npos);
  const Model two = support::model_of({support::leaf(1), support::leaf(2)}, 2);
  EXPECT_NE(
      refusal(sampled(two, row, {1})).find("quantiles are those of one target, but the model has 2 outputs"),
      std::string::npos);
  const Model boosted = support::model_of({support::leaf(1), support::leaf(2)});
  EXPECT_NE(
      refusal(sampled(boosted, row, {1}))
          .find(
              "samples: quantiles are those of a single tree or of a forest that averages its trees, but this "
              "model of by-hand adds 2 trees"),
      std::string::npos);
  const auto program = sampled(model, row, {1});
  ASSERT_TRUE(program.ok()) << program.error().text();
  const auto predictor = host_backend(*program);
  ASSERT_TRUE(predictor.ok());
  const auto context = (*predictor)->make_context();
  const std::vector<float> rows(model.num_features);
  const auto asked = [&](const Predictor& with, std::span<const double> numbers, OutputKind output) {
    CallOptions options;
    options.quantiles = numbers;
    std::vector<double> out(16);
    const auto done = with.predict_with(*context, RowBlock{rows.data(), 1, rows.size()}, output,
                                        ResultType::Float64, options, out.data());
    return done.ok() ? std::string() : done.error().text();
  };
  const double above[] = {0.5, 1.5}, below[] = {-0.25}, none[] = {nan};
  EXPECT_NE(
      asked(**predictor, above, OutputKind::Quantile).find("quantiles: 1.5: expected a number from 0 to 1"),
      std::string::npos);
  EXPECT_NE(asked(**predictor, below, OutputKind::Quantile).find("quantiles: -0.25"), std::string::npos);
  EXPECT_NE(asked(**predictor, none, OutputKind::Quantile).find("quantiles: nan"), std::string::npos);
  EXPECT_NE(asked(**predictor, {}, OutputKind::Quantile).find("quantiles: 0 of them"), std::string::npos);
}

}  // namespace
}  // namespace forestvm::test::test_quantiles
