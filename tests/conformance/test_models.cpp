// The models in the repository, under every schedule.
#include <gtest/gtest.h>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/statistics.hpp>
#include <forestvm/load.hpp>

#include "answers.hpp"
#include "matrix.hpp"
#include "model_conformance.hpp"
#include "support/floats.hpp"
#include "support/npy.hpp"
#include "support/targets_here.hpp"
#include "support/test_name.hpp"

namespace forestvm::test::test_models {
namespace {

namespace fs = std::filesystem;

class RepositoryModel : public testing::TestWithParam<ModelFile> {};

TEST_P(RepositoryModel, AnswersAsItsTrainer) { check_model_file(GetParam(), {}); }
TEST_P(RepositoryModel, InEveryLayoutTilingAndContract) { check_matrix(GetParam()); }

constexpr auto test_name = [](const auto& test) { return support::test_name(test.param.name); };
INSTANTIATE_TEST_SUITE_P(Real, RepositoryModel, testing::ValuesIn(model_files(FORESTVM_TEST_DATA, "")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Versions, RepositoryModel,
                         testing::ValuesIn(model_files(fs::path(FORESTVM_TEST_DATA) / "xgboost_versions",
                                                       "")),
                         test_name);

INSTANTIATE_TEST_SUITE_P(Lightgbm, RepositoryModel,
                         testing::ValuesIn(model_files(fs::path(FORESTVM_TEST_DATA) / "lightgbm", "")),
                         test_name);

INSTANTIATE_TEST_SUITE_P(Catboost, RepositoryModel,
                         testing::ValuesIn(support::catboost_files(fs::path(FORESTVM_TEST_DATA) / "catboost",
                                                                   "")),
                         test_name);

INSTANTIATE_TEST_SUITE_P(Onnx, RepositoryModel,
                         testing::ValuesIn(support::onnx_files(fs::path(FORESTVM_TEST_DATA) / "onnx")),
                         test_name);

INSTANTIATE_TEST_SUITE_P(Treelite, RepositoryModel,
                         testing::ValuesIn(support::treelite_files(fs::path(FORESTVM_TEST_DATA) /
                                                                   "treelite")),
                         test_name);

INSTANTIATE_TEST_SUITE_P(Ydf, RepositoryModel,
                         testing::ValuesIn(support::ydf_folders(fs::path(FORESTVM_TEST_DATA) / "ydf")),
                         test_name);

/// Compares in the trainer's own type, which shows the order of additions better than float32.
TEST(RepositoryModels, Float64ScoresAreTheTrainers) {
  const char* const schedules[] = {
      "",
      "reorder(tree, batch)",
      "layout(tree, reorg); orderTrees(depth)",
      "tileTree(tree, 8, uniform); layout(tree, sparse)",
      "layout(tree, sparse16); unrollWalk(tree)",
      "tile(batch, b0, b1, 128); reorder(b0, tree, b1); parallel(b0); encode(u8)",
      "tile(batch, b0, b1, 128); reorder(b0, tree, b1); layout(tree, sparse8); interleave(b1)",
      "tile(tree, t0, t1, 16); layout(tree, sparse8); interleave(t1)"};
  std::vector<ModelFile> files = model_files(fs::path(FORESTVM_TEST_DATA) / "lightgbm", "");
  for (ModelFile& file : support::catboost_files(fs::path(FORESTVM_TEST_DATA) / "catboost", ""))
    if (file.path.extension() == ".cbm") files.push_back(std::move(file));
  for (const ModelFile& file : files) {
    const auto model = load_model(file.path.string());
    ASSERT_TRUE(model.ok()) << model.error().text();
    const auto answers = support::read_answers<double>(file.path, *model);
    const auto leaves = support::read_npy<std::int32_t>(file.path.parent_path() / "expected_leaf.npy");
    for (const char* text : schedules) {
      SCOPED_TRACE(file.name + ": " + text);
      const auto compiled = compile(*model, *parse_schedule(text));
      if (statistics(*model).category_splits != 0 && !compiled.ok()) {  // the layout reads values
        EXPECT_NE(compiled.error().message.find("categorical splits"), std::string::npos);
        continue;
      }
      ASSERT_TRUE(compiled.ok()) << compiled.error().text();
      for (const std::string& target : support::targets_here()) {
        const auto predictor = host_backend(compiled->program, {2, target});
        const auto context = (*predictor)->make_context();
        const RowBlock rows = rows_of(answers, 0, answers.count);
        std::vector<double> raw(answers.raw.size()), value(answers.value.size());
        std::vector<std::int32_t> numbers(leaves.data.size());
        ASSERT_TRUE((*predictor)->predict_wide(*context, rows, OutputKind::Raw, raw.data()).ok());
        ASSERT_TRUE((*predictor)->predict_wide(*context, rows, OutputKind::Value, value.data()).ok());
        ASSERT_TRUE((*predictor)->predict_leaf(*context, rows, numbers.data()).ok());
        EXPECT_EQ(numbers, leaves.data);
        std::int64_t raw_apart = 0, value_apart = 0;
        for (std::size_t i = 0; i < raw.size(); ++i)
          raw_apart = std::max(raw_apart, support::ulps(raw[i], answers.raw[i]));
        for (std::size_t i = 0; i < value.size(); ++i)
          if (!(value[i] == 0 && answers.value[i] < 1e-307))  // CatBoost's exp(-inf) is not always 0
            value_apart = std::max(value_apart, support::ulps(value[i], answers.value[i]));
        EXPECT_EQ(raw_apart, 0);
        EXPECT_LE(value_apart, 3);
      }
    }
  }
}

/// Leaf numbers against XGBoost's own (pred_leaf), under schedules that place leaves differently.
TEST(RepositoryModels, LeafNumbersAreXgboosts) {
  const fs::path folder = fs::path(FORESTVM_TEST_DATA) / "digits";
  const auto expected = support::read_npy<float>(folder / "expected_leaf.npy");
  const auto model = load_model((folder / "model.ubj").string());
  ASSERT_TRUE(model.ok());
  const support::Answers answers = support::read_answers(folder / "model.ubj", *model);
  const std::size_t trees = model->trees.size(), rows = expected.data.size() / trees;
  ASSERT_GT(rows, 0u);
  for (const char* text : {"", "layout(tree, reorg)", "tileTree(tree, 8, uniform); layout(tree, sparse)",
                           "orderTrees(depth); tile(tree, t0, t1, 30); parallel(t0); unrollWalk(t1)"}) {
    const auto compiled = compile(*model, *parse_schedule(text));
    ASSERT_TRUE(compiled.ok()) << compiled.error().text();
    const auto predictor = host_backend(compiled->program, {2, "auto"});
    const auto context = (*predictor)->make_context();
    std::vector<std::int32_t> leaves(rows * trees);
    ASSERT_TRUE(
        (*predictor)
            ->predict_leaf(*context, RowBlock{answers.rows.data(), rows, answers.features}, leaves.data())
            .ok());
    for (std::size_t i = 0; i < leaves.size(); ++i)
      ASSERT_EQ(leaves[i], static_cast<std::int32_t>(expected.data[i])) << text << ", number " << i;
  }
}

TEST(RepositoryModels, AreThere) {
  EXPECT_EQ(model_files(FORESTVM_TEST_DATA, "").size(), 3u);
  EXPECT_GE(model_files(fs::path(FORESTVM_TEST_DATA) / "xgboost_versions", "").size(), 30u);
  EXPECT_EQ(model_files(fs::path(FORESTVM_TEST_DATA) / "lightgbm", "").size(), 23u);
  EXPECT_EQ(support::catboost_files(fs::path(FORESTVM_TEST_DATA) / "catboost", "").size(), 24u);
}

}  // namespace
}  // namespace forestvm::test::test_models
