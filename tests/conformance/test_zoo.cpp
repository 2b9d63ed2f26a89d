// The zoo's models, under every schedule; skipped if there is no zoo.
#include <gtest/gtest.h>

#include "answers.hpp"
#include "matrix.hpp"
#include "model_conformance.hpp"
#include "support/test_name.hpp"

namespace forestvm::test::test_zoo {
namespace {

/// Returns the ONNX files that are read: tests/frontend/test_trainer_answers.cpp has the table of those that are not.
std::vector<ModelFile> onnx_files() {
  std::vector<ModelFile> files = support::onnx_files(zoo() / "formats");
  std::erase_if(files, [](const ModelFile& file) { return file.name == "sk_iforest_onnx"; });
  return files;
}

class ZooModel : public testing::TestWithParam<ModelFile> {};

TEST_P(ZooModel, AnswersAsItsTrainer) { check_model_file(GetParam(), {400'000, 5}); }
TEST_P(ZooModel, InEveryLayoutTilingAndContract) { check_matrix(GetParam()); }

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ZooModel);

constexpr auto test_name = [](const auto& test) { return support::test_name(test.param.name); };
INSTANTIATE_TEST_SUITE_P(Bench, ZooModel, testing::ValuesIn(model_files(zoo() / "bench", "")), test_name);
INSTANTIATE_TEST_SUITE_P(Formats, ZooModel, testing::ValuesIn(model_files(zoo() / "formats", "xgb_")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Lightgbm, ZooModel, testing::ValuesIn(model_files(zoo() / "formats", "lgb_")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Catboost, ZooModel,
                         testing::ValuesIn(support::catboost_files(zoo() / "formats", "cat_")), test_name);
INSTANTIATE_TEST_SUITE_P(Onnx, ZooModel, testing::ValuesIn(onnx_files()), test_name);
INSTANTIATE_TEST_SUITE_P(Treelite, ZooModel, testing::ValuesIn(support::treelite_files(zoo() / "formats")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Ydf, ZooModel, testing::ValuesIn(support::ydf_folders(zoo() / "formats")),
                         test_name);

TEST(Zoo, IsThere) {
  if (!std::filesystem::exists(zoo() / "bench"))
    GTEST_SKIP() << "no zoo at " << zoo() << ": set FORESTVM_ZOO";
  EXPECT_GE(model_files(zoo() / "bench", "").size(), 14u);
  EXPECT_GE(model_files(zoo() / "formats", "xgb_").size(), 50u);
  EXPECT_GE(model_files(zoo() / "formats", "lgb_").size(), 20u);
  EXPECT_GE(support::catboost_files(zoo() / "formats", "cat_").size(), 40u);
  EXPECT_GE(onnx_files().size(), 18u);
  EXPECT_GE(support::treelite_files(zoo() / "formats").size(), 15u);
  EXPECT_GE(support::ydf_folders(zoo() / "formats").size(), 15u);
}

}  // namespace
}  // namespace forestvm::test::test_zoo
