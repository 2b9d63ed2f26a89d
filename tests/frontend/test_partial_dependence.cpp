// Partial dependence against predicting all rows with the feature replaced, at every point, for the models of the
// repository.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <forestvm/internal/reference.hpp>
#include <forestvm/load.hpp>
#include <forestvm/partial_dependence.hpp>

#include "support/npy.hpp"
#include "support/test_name.hpp"

namespace forestvm::test_partial_dependence {
namespace {

std::string data(const std::string& name) { return std::string(FORESTVM_TEST_DATA) + "/" + name; }

/// Returns the mean raw score of the rows with one value of a feature.
double replaced_mean(const Model& model, std::vector<double> rows, std::uint32_t feature, double value,
                     std::uint32_t output) {
  const std::size_t width = model.num_features, count = rows.size() / width;
  for (std::size_t i = 0; i < count; ++i) rows[i * width + feature] = value;
  const auto reference = reference_predict(model, std::span<const double>(rows), count);
  EXPECT_TRUE(reference.ok());
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += reference->raw[i * model.num_outputs + output];
  return sum / static_cast<double>(count);
}

/// Expects the dependence on up to five features to be the means of predictions, at up to 40 of their points.
void expect_means(const Model& model, const std::vector<double>& rows, std::size_t at_once,
                  double tolerance) {
  auto made = PartialDependence::make(model);
  ASSERT_TRUE(made.ok()) << made.error().text();
  const std::size_t width = model.num_features;
  for (std::size_t i = 0; i < rows.size(); i += at_once * width)
    ASSERT_TRUE(made->add(std::span(rows).subspan(i, std::min(at_once * width, rows.size() - i))).ok());
  ASSERT_EQ(made->rows(), rows.size() / width);
  const std::uint32_t output = model.num_outputs - 1;
  std::size_t tried = 0;
  for (std::uint32_t f = 0; f < width && tried < 5; ++f) {
    if (!made->has(f)) continue;
    ++tried;
    const Dependence dependence = made->of(f, output);
    const std::size_t step = dependence.pieces.size() / 40 + 1;
    for (std::size_t i = 0; i < dependence.pieces.size(); i += step) {
      const DependencePiece& piece = dependence.pieces[i];
      ASSERT_NEAR(piece.mean, replaced_mean(model, rows, f, piece.at, output), tolerance)
          << "feature " << f << " at " << piece.at;
      const double from = dependence.categories || i == 0 ? piece.at : piece.from;
      ASSERT_NEAR(piece.mean, replaced_mean(model, rows, f, from, output), tolerance)
          << "feature " << f << " from " << from;
    }
    const double missing = std::numeric_limits<double>::quiet_NaN();
    ASSERT_NEAR(dependence.missing, replaced_mean(model, rows, f, missing, output), tolerance) << f;
  }
  EXPECT_GT(tried, 0U);
  const auto reference = reference_predict(model, std::span<const double>(rows), made->rows());
  double sum = 0;
  for (std::size_t i = 0; i < made->rows(); ++i) sum += reference->raw[i * model.num_outputs + output];
  EXPECT_NEAR(made->mean(output), sum / static_cast<double>(made->rows()), tolerance);
}

class OfModels : public ::testing::TestWithParam<const char*> {};

TEST_P(OfModels, IsTheMeanOfPredictions) {
  const std::string folder = GetParam();
  std::string path = data(folder);
  const auto model = load_model(path);
  ASSERT_TRUE(model.ok()) << model.error().text();
  const std::string rows_path = path.substr(0, path.rfind('/')) + "/rows.npy";
  const std::vector<double> rows = support::read_numbers(rows_path);
  // Sums of float32 scores are rounded in predictions.
  const double tolerance = model->score_type == ScalarType::Float64 ? 1e-11 : 2e-5;
  expect_means(*model, rows, 100, tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Trainers, OfModels,
    ::testing::Values("breast_cancer/model.json", "digits/model.ubj", "diabetes/model.json",
                      "lightgbm/4.7.0_classes/model.txt", "lightgbm/4.7.0_categories/model.txt",
                      "lightgbm/4.7.0_nan/model.txt", "lightgbm/4.7.0_zero/model.txt",
                      "catboost/1.2.10_scaled/model.cbm", "catboost/1.2.10_nan_max/model.cbm",
                      "skops/1.9_forest/model.skops", "skops/1.9_hist_categories/model.skops",
                      "lightgbm/4.7.0_none/model.txt"),
    [](const auto& test) { return support::test_name(test.param); });

/// Categories of CatBoost are compared through columns that are computed from them.
TEST(PartialDependence, IsNotThatOfFeaturesWhichOtherColumnsRead) {
  const auto model = load_model(data("catboost/1.2.10_numbers/model.cbm"));
  ASSERT_TRUE(model.ok()) << model.error().text();
  const std::vector<double> rows = support::read_numbers(data("catboost/1.2.10_numbers/rows.npy"));
  auto made = PartialDependence::make(*model);
  ASSERT_TRUE(made.ok()) << made.error().text();
  ASSERT_TRUE(made->add(rows).ok());
  for (std::uint32_t f = 0; f < model->num_features; ++f) EXPECT_FALSE(made->has(f)) << f;
  const auto reference = reference_predict(*model, std::span<const double>(rows), made->rows());
  double sum = 0;
  for (std::size_t i = 0; i < made->rows(); ++i) sum += reference->raw[i * model->num_outputs];
  EXPECT_NEAR(made->mean(0), sum / static_cast<double>(made->rows()), 1e-11);
}

TEST(PartialDependence, IsRefusedByName) {
  const auto linear = load_model(data("lightgbm/4.7.0_linear/model.txt"));
  ASSERT_TRUE(linear.ok());
  EXPECT_EQ(PartialDependence::make(*linear).error().text(),
            "tree 0: its leaves are linear functions of the row, which have no partial dependence");
  const auto model = load_model(data("diabetes/model.json"));
  EXPECT_EQ(PartialDependence::make(*model)->add(std::vector<double>(11)).error().message,
            "11 values are no rows of 10 features");
}

}  // namespace
}  // namespace forestvm::test_partial_dependence
