// Contributions and interactions of features, and quantiles of targets, through the C ABI.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/forestvm.h>

#include "opened_program.hpp"
#include "support/small_models.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_c_api_contributions {
namespace {

TEST(CApiContributions, AddUpToTheRawScores) {
  Model model = small_forest();
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  const Opened opened(explained(model, "parallel(batch)"));
  const std::uint32_t width = width_of(opened.open(), FVM_OUTPUT_CONTRIBUTIONS);
  ASSERT_EQ(width, 3u * 4u);
  const std::vector<float> rows = small_rows(100, 3);
  std::vector<float> parts(100 * width), raw(100 * 3);
  ASSERT_EQ(fvm_predict_f32(opened.context(), rows.data(), 100, 3, FVM_OUTPUT_CONTRIBUTIONS, parts.data(),
                            parts.size()),
            FVM_OK)
      << fvm_last_error();
  ASSERT_EQ(fvm_predict_f32(opened.context(), rows.data(), 100, 3, FVM_OUTPUT_RAW, raw.data(), raw.size()),
            FVM_OK);
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const float* const mine = parts.data() + i * 4;
    EXPECT_NEAR(mine[0] + mine[1] + mine[2] + mine[3], raw[i], 1e-5f);
  }
}

TEST(CApiContributions, StartFromMargins) {
  Model model = small_forest();
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  model.takes_margins = true;
  const Opened opened(explained(model, "parallel(batch)"));
  const std::vector<float> values = small_rows(100, 3);
  fvm_rows rows = FVM_ROWS_INIT;
  rows.data = values.data();
  rows.row_count = 100;
  rows.row_stride = 3;
  std::vector<float> margins(100 * 3);
  for (std::size_t i = 0; i < margins.size(); ++i) margins[i] = static_cast<float>(i) / 8;
  fvm_call_options options = FVM_CALL_OPTIONS_INIT;
  options.base_margin = margins.data();
  options.base_margin_rows = 100;
  options.base_margin_outputs = 3;
  std::vector<double> parts(100 * 12), raw(100 * 3);
  const auto predict = [&](fvm_output output, std::vector<double>& out) {
    return fvm_predict_with(opened.context(), &rows, output, FVM_TYPE_FLOAT64, &options, out.data(),
                            out.size());
  };
  ASSERT_EQ(predict(FVM_OUTPUT_CONTRIBUTIONS, parts), FVM_OK) << fvm_last_error();
  ASSERT_EQ(predict(FVM_OUTPUT_RAW, raw), FVM_OK) << fvm_last_error();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const double* const mine = parts.data() + i * 4;
    EXPECT_NEAR(mine[0] + mine[1] + mine[2] + mine[3], raw[i], 1e-5) << i;
  }
  options.base_margin_rows = 99;
  EXPECT_EQ(predict(FVM_OUTPUT_CONTRIBUTIONS, parts), FVM_USAGE);
}

TEST(CApiContributions, AreOfTypesThatHoldThem) {
  Model model = small_forest();
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  const Opened with(explained(model, "parallel(batch)")), without(compiled(model, "parallel(batch)"));
  const std::vector<float> values = small_rows(2, 3);
  fvm_rows rows = FVM_ROWS_INIT;
  rows.data = values.data();
  rows.row_count = 2;
  rows.row_stride = 3;
  std::vector<double> wide(2 * 12);
  EXPECT_EQ(fvm_predict(with.context(), &rows, FVM_OUTPUT_CONTRIBUTIONS, FVM_TYPE_FLOAT64, wide.data(),
                        wide.size()),
            FVM_OK)
      << fvm_last_error();
  std::vector<std::int64_t> whole(2 * 12);
  EXPECT_EQ(fvm_predict(with.context(), &rows, FVM_OUTPUT_CONTRIBUTIONS, FVM_TYPE_INT64, whole.data(),
                        whole.size()),
            FVM_USAGE);
  EXPECT_EQ(fvm_predict(with.context(), &rows, FVM_OUTPUT_CONTRIBUTIONS, FVM_TYPE_FLOAT64, wide.data(), 23),
            FVM_USAGE);
  EXPECT_EQ(fvm_predict(without.context(), &rows, FVM_OUTPUT_CONTRIBUTIONS, FVM_TYPE_FLOAT64, wide.data(),
                        wide.size()),
            FVM_REFUSED);
  EXPECT_NE(std::string(fvm_last_error()).find("--with contributions"), std::string::npos)
      << fvm_last_error();
  EXPECT_EQ(width_of(without.open(), FVM_OUTPUT_CONTRIBUTIONS), 0u);
}

TEST(CApiContributions, OfChosenFeaturesAreThoseOfAll) {
  Model model = small_forest();
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  const Opened opened(explained(model, "parallel(batch)"));
  const std::vector<float> values = small_rows(2, 3);
  fvm_rows rows = FVM_ROWS_INIT;
  rows.data = values.data();
  rows.row_count = 2;
  rows.row_stride = 3;
  std::vector<double> all(2 * 12), some(2 * 9);
  fvm_call_options options = FVM_CALL_OPTIONS_INIT;
  const auto predict = [&](std::vector<double>& out) {
    return fvm_predict_with(opened.context(), &rows, FVM_OUTPUT_CONTRIBUTIONS, FVM_TYPE_FLOAT64, &options,
                            out.data(), out.size());
  };
  ASSERT_EQ(predict(all), FVM_OK);
  const std::uint32_t chosen[] = {0, 2};
  options.features = chosen;
  options.feature_count = 2;
  std::uint32_t width = 0;
  ASSERT_EQ(fvm_call_width(opened.open().get(), FVM_OUTPUT_CONTRIBUTIONS, &options, &width), FVM_OK);
  EXPECT_EQ(width, 9u);
  ASSERT_EQ(predict(some), FVM_OK) << fvm_last_error();
  for (std::size_t i = 0; i < some.size(); ++i)
    EXPECT_EQ(some[i], all[i / 3 * 4 + (i % 3 == 0 ? 0 : i % 3 + 1)]);
  const std::uint32_t wrong[] = {2, 0};
  options.features = wrong;
  EXPECT_EQ(predict(some), FVM_USAGE);
}

TEST(CApiInteractions, AddUpToTheContributions) {
  Model model = small_forest();
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  const Opened opened(interacting(model, "parallel(batch)")), without(explained(model, "parallel(batch)"));
  const std::uint32_t width = width_of(opened.open(), FVM_OUTPUT_INTERACTIONS);
  ASSERT_EQ(width, 3u * 4u * 4u);
  const std::vector<float> rows = small_rows(100, 3);
  std::vector<float> pairs(100 * width), parts(100 * width / 4);
  const auto predict = [&](const Opened& with, fvm_output output, std::vector<float>& out) {
    return fvm_predict_f32(with.context(), rows.data(), 100, 3, output, out.data(), out.size());
  };
  ASSERT_EQ(predict(opened, FVM_OUTPUT_INTERACTIONS, pairs), FVM_OK) << fvm_last_error();
  ASSERT_EQ(predict(opened, FVM_OUTPUT_CONTRIBUTIONS, parts), FVM_OK) << fvm_last_error();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const float* const mine = pairs.data() + i * 4;
    EXPECT_NEAR(mine[0] + mine[1] + mine[2] + mine[3], parts[i], 1e-5f);
  }
  EXPECT_EQ(predict(without, FVM_OUTPUT_INTERACTIONS, pairs), FVM_REFUSED);
  EXPECT_NE(std::string(fvm_last_error()).find("--with interactions"), std::string::npos) << fvm_last_error();
  EXPECT_EQ(width_of(without.open(), FVM_OUTPUT_INTERACTIONS), 0u);
}

TEST(CApiApproxContributions, AddUpToTheRawScore) {
  Model model = small_forest();
  for (Tree& tree : model.trees) support::cover(tree, 0, 64);
  CompileOptions options;
  options.approx_contributions = true;
  const Opened opened(compiled(model, "parallel(batch)", options)),
      without(compiled(model, "parallel(batch)"));
  const std::uint32_t width = width_of(opened.open(), FVM_OUTPUT_APPROX_CONTRIBUTIONS);
  ASSERT_EQ(width, 3u * 4u);
  const std::vector<float> rows = small_rows(100, 3);
  std::vector<float> parts(100 * width), raw(100 * width / 4);
  const auto predict = [&](const Opened& with, fvm_output output, std::vector<float>& out) {
    return fvm_predict_f32(with.context(), rows.data(), 100, 3, output, out.data(), out.size());
  };
  ASSERT_EQ(predict(opened, FVM_OUTPUT_APPROX_CONTRIBUTIONS, parts), FVM_OK) << fvm_last_error();
  ASSERT_EQ(predict(opened, FVM_OUTPUT_RAW, raw), FVM_OK) << fvm_last_error();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const float* const mine = parts.data() + i * 4;
    EXPECT_NEAR(mine[0] + mine[1] + mine[2] + mine[3], raw[i], 1e-5f);
  }
  EXPECT_EQ(predict(without, FVM_OUTPUT_APPROX_CONTRIBUTIONS, parts), FVM_REFUSED);
  EXPECT_NE(std::string(fvm_last_error()).find("--with approx-contributions"), std::string::npos)
      << fvm_last_error();
  EXPECT_EQ(width_of(without.open(), FVM_OUTPUT_APPROX_CONTRIBUTIONS), 0u);
}

TEST(CApiQuantiles, AreThoseOfTheCall) {
  const Opened opened(sampled_program()), without(compiled(small_forest({.outputs = 1}), ""));
  ASSERT_EQ(width_of(opened.open(), FVM_OUTPUT_QUANTILE), 3u);
  const std::vector<float> values = small_rows(20, 3);
  fvm_rows rows = FVM_ROWS_INIT;
  rows.data = values.data();
  rows.row_count = 20;
  rows.row_stride = 3;
  fvm_call_options options = FVM_CALL_OPTIONS_INIT;
  const auto predict = [&](const Opened& with, fvm_type type, void* out, std::size_t room) {
    return fvm_predict_with(with.context(), &rows, FVM_OUTPUT_QUANTILE, type, &options, out, room);
  };
  std::vector<double> usual(20 * 3), some(20 * 2);
  std::vector<float> narrow(20 * 2);
  std::vector<std::int64_t> whole(20 * 2);
  ASSERT_EQ(predict(opened, FVM_TYPE_FLOAT64, usual.data(), usual.size()), FVM_OK) << fvm_last_error();
  const double asked[] = {0.9, 0.1};
  options.quantiles = asked;
  options.quantile_count = 2;
  std::uint32_t width = 0;
  ASSERT_EQ(fvm_call_width(opened.open().get(), FVM_OUTPUT_QUANTILE, &options, &width), FVM_OK);
  EXPECT_EQ(width, 2u);
  ASSERT_EQ(predict(opened, FVM_TYPE_FLOAT64, some.data(), some.size()), FVM_OK) << fvm_last_error();
  ASSERT_EQ(predict(opened, FVM_TYPE_FLOAT32, narrow.data(), narrow.size()), FVM_OK) << fvm_last_error();
  for (std::size_t row = 0; row < 20; ++row) {
    EXPECT_EQ(some[2 * row], usual[3 * row + 2]);
    EXPECT_EQ(some[2 * row + 1], usual[3 * row]);
    EXPECT_EQ(narrow[2 * row], static_cast<float>(some[2 * row]));
  }
  const auto expect_refused = [](fvm_status got, fvm_status status, const char* what) {
    EXPECT_EQ(got, status) << what;
    EXPECT_NE(std::string(fvm_last_error()).find(what), std::string::npos) << fvm_last_error();
  };
  expect_refused(predict(opened, FVM_TYPE_INT64, whole.data(), whole.size()), FVM_USAGE,
                 "would lose digits in others");
  expect_refused(predict(without, FVM_TYPE_FLOAT64, some.data(), some.size()), FVM_REFUSED,
                 "--with quantile and --samples");
  EXPECT_EQ(width_of(without.open(), FVM_OUTPUT_QUANTILE), 0u);
  const double wrong[] = {0.5, 1.25};
  options.quantiles = wrong;
  expect_refused(predict(opened, FVM_TYPE_FLOAT64, some.data(), some.size()), FVM_USAGE,
                 "quantiles: 1.25: expected a number from 0 to 1");
  options.quantiles = nullptr;
  expect_refused(predict(opened, FVM_TYPE_FLOAT64, some.data(), some.size()), FVM_USAGE,
                 "quantiles is null, but quantile_count is 2");
}

}  // namespace
}  // namespace forestvm::test::test_c_api_contributions
