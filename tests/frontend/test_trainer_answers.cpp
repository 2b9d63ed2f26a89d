// The trainers' own answers: the reference predictor on every model of tests/data and of the zoo that can be
// read.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include <forestvm/load.hpp>

#include <forestvm/reference.hpp>
#include "support/floats.hpp"
#include "support/model_folders.hpp"
#include "support/npy.hpp"

namespace forestvm::test {
namespace {

namespace fs = std::filesystem;
using support::zoo;

fs::path lightgbm() { return fs::path(FORESTVM_TEST_DATA) / "lightgbm"; }

/// Returns how many rows of a model to predict, so that large models stay quick.
std::size_t affordable_rows(const Model& model) {
  constexpr std::size_t walks = 3'000'000;
  return 100 + walks / std::max<std::size_t>(model.trees.size(), 1);
}

/// Returns whether values come from functions that are not the same bits on every machine.
bool is_computed(Transform transform) {
  switch (transform) {
    case Transform::Identity:
    case Transform::Argmax:
    case Transform::Step:
    case Transform::Average:
    case Transform::Clamp:
      return false;
    default:
      return true;
  }
}

/// Score is the type in which the trainer sums.
template <class Score>
void compare(const Model& model, const support::AnswersOf<Score>& answers) {
  ASSERT_EQ(answers.features, model.num_features);
  const std::size_t count = std::min(answers.count, affordable_rows(model));
  const auto predicted = reference_predict(model, std::span(answers.rows).first(count * answers.features),
                                           count, {0, model.trees.size(), false});
  ASSERT_TRUE(predicted.ok()) << predicted.error().text();
  ASSERT_EQ(answers.value_width, predicted->value_width);
  const bool has_raw = !answers.raw.empty();
  ASSERT_TRUE(!has_raw || answers.raw_width == predicted->raw_width);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < predicted->raw.size() && has_raw; ++i)
    if (!support::same_bits(static_cast<Score>(predicted->raw[i]), answers.raw[i])) ++wrong;
  EXPECT_EQ(wrong, 0u) << "raw scores of " << predicted->raw.size() << " differ";
  std::int64_t worst = 0;
  for (std::size_t i = 0; i < predicted->value.size(); ++i)
    worst = std::max(worst, support::ulps(static_cast<Score>(predicted->value[i]), answers.value[i]));
  EXPECT_LE(worst, is_computed(model.transform) ? 2 : 0) << "units in the last place";
}

/// Checks every model file; returns the number of those that can be read.
std::size_t check_files(const std::vector<support::ModelFile>& files) {
  std::size_t read = 0;
  for (const support::ModelFile& file : files) {
    SCOPED_TRACE(file.path);
    const Result<Model> model = load_model(file.path.string());
    if (!model.ok()) {
      EXPECT_NE(model.error().message.find("not supported yet"), std::string::npos) << model.error().text();
      std::cout << "  [refused] " << file.name << ": " << model.error().text() << '\n';
      continue;
    }
    if (model->score_type == ScalarType::Float64)
      compare(*model, support::read_answers<double>(file.path, &*model));
    else
      compare(*model, support::read_answers<float>(file.path, &*model));
    ++read;
  }
  return read;
}

/// Checks every model file of every folder whose name starts with `prefix`; returns their number.
std::size_t check_folders(const fs::path& parent, const std::string& prefix) {
  return check_files(support::model_files(parent, prefix));
}

TEST(TrainerAnswers, Repository) {
  EXPECT_GE(check_folders(FORESTVM_TEST_DATA, ""), 3u);
  EXPECT_GE(check_folders(fs::path(FORESTVM_TEST_DATA) / "xgboost_versions", ""), 30u);
}

TEST(TrainerAnswers, Lightgbm) { EXPECT_EQ(check_folders(lightgbm(), ""), 22u); }

TEST(TrainerAnswers, LightgbmsLeafNumbers) {
  for (const support::ModelFile& file : support::model_files(lightgbm(), "")) {
    SCOPED_TRACE(file.path);
    const Result<Model> model = load_model(file.path.string());
    ASSERT_TRUE(model.ok()) << model.error().text();
    const auto answers = support::read_answers<double>(file.path);
    const auto leaves = support::read_npy<std::int32_t>(file.path.parent_path() / "expected_leaf.npy");
    const auto predicted = reference_predict(*model, answers.rows, answers.count);
    ASSERT_TRUE(predicted.ok()) << predicted.error().text();
    EXPECT_EQ(predicted->leaf, leaves.data);
  }
}

/// Compares numbers of leaves with the trainer's.
void check_leaves(const std::vector<support::ModelFile>& files) {
  for (const support::ModelFile& file : files) {
    SCOPED_TRACE(file.path);
    const Result<Model> model = load_model(file.path.string());
    ASSERT_TRUE(model.ok()) << model.error().text();
    const support::Answers answers = support::read_float_answers(file.path, *model);
    const auto leaves = support::read_npy<std::int32_t>(file.path.parent_path() / "expected_leaf.npy");
    const auto predicted = reference_predict(*model, answers.rows, answers.count);
    ASSERT_TRUE(predicted.ok()) << predicted.error().text();
    EXPECT_EQ(predicted->leaf, leaves.data);
  }
}

TEST(TrainerAnswers, Treelite) {
  const auto files = support::treelite_files(fs::path(FORESTVM_TEST_DATA) / "treelite");
  EXPECT_EQ(check_files(files), 19u);
  check_leaves(files);
}

TEST(TrainerAnswers, Ydf) {
  auto folders = support::ydf_folders(fs::path(FORESTVM_TEST_DATA) / "ydf");
  std::erase_if(folders, [](const support::ModelFile& folder) { return folder.name == "slow_only"; });
  EXPECT_EQ(check_files(folders), 17u);
  check_leaves(folders);
}

TEST(Zoo, XgboostFormats) {
  if (!fs::exists(zoo() / "formats")) GTEST_SKIP() << "no zoo at " << zoo() << ": set FORESTVM_ZOO";
  EXPECT_GE(check_folders(zoo() / "formats", "xgb_"), 50u);
}

TEST(Zoo, LightgbmFormats) {
  if (!fs::exists(zoo() / "formats")) GTEST_SKIP() << "no zoo at " << zoo() << ": set FORESTVM_ZOO";
  EXPECT_EQ(check_folders(zoo() / "formats", "lgb_"), 22u);
}

TEST(Zoo, Treelite) {
  if (!fs::exists(zoo() / "formats")) GTEST_SKIP() << "no zoo at " << zoo() << ": set FORESTVM_ZOO";
  EXPECT_EQ(check_files(support::treelite_files(zoo() / "formats")), 15u);
}

TEST(Zoo, YdfFormats) {
  if (!fs::exists(zoo() / "formats")) GTEST_SKIP() << "no zoo at " << zoo() << ": set FORESTVM_ZOO";
  EXPECT_EQ(check_files(support::ydf_folders(zoo() / "formats")), 15u);
}

TEST(Zoo, Bench) {
  if (!fs::exists(zoo() / "bench")) GTEST_SKIP() << "no zoo at " << zoo() << ": set FORESTVM_ZOO";
  EXPECT_GE(check_folders(zoo() / "bench", ""), 14u);
}

}  // namespace
}  // namespace forestvm::test
