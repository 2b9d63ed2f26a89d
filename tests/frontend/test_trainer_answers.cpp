// The trainers' own answers: the reference predictor on every model of tests/data and of the zoo, and which models are
// refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include <forestvm/load.hpp>

#include "support/model_folders.hpp"
#include "support/pmml_folders.hpp"
#include "support/test_name.hpp"
#include "support/trainer_answers.hpp"

namespace forestvm::test::test_trainer_answers {
namespace {

namespace fs = std::filesystem;
using support::ModelFile;
using support::zoo;

/// The models that are refused, and why.
const std::map<std::string, std::string> kRefused = {
    {"sk_iforest_onnx", "node \"node_sample0_Gather\" (Gather): an operation that is not read"},
};

class TrainerAnswers : public testing::TestWithParam<ModelFile> {};

TEST_P(TrainerAnswers, AreGiven) {
  const ModelFile& file = GetParam();
  const Result<Model> model = load_model(file.path.string());
  const auto refused = kRefused.find(file.name);
  if (refused != kRefused.end()) {
    ASSERT_FALSE(model.ok()) << "not refused";
    EXPECT_NE(model.error().text().find(refused->second), std::string::npos) << model.error().text();
    return;
  }
  ASSERT_TRUE(model.ok()) << model.error().text();
  EXPECT_EQ(support::difference_from_trainer(*model, file), "") << file.path;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TrainerAnswers);

constexpr auto test_name = [](const auto& test) { return support::test_name(test.param.name); };
INSTANTIATE_TEST_SUITE_P(Repository, TrainerAnswers, testing::ValuesIn(support::repository_models()),
                         test_name);
INSTANTIATE_TEST_SUITE_P(ZooFormats, TrainerAnswers,
                         testing::ValuesIn(support::every_model(zoo() / "formats")), test_name);
INSTANTIATE_TEST_SUITE_P(ZooBench, TrainerAnswers, testing::ValuesIn(support::every_model(zoo() / "bench")),
                         test_name);

TEST(RepositoryModels, AreThere) {
  std::map<std::string, int> formats;
  for (const ModelFile& file : support::repository_models()) {
    const auto model = load_model(file.path.string());
    ASSERT_TRUE(model.ok()) << file.path << ": " << model.error().text();
    ++formats[model->format];
  }
  EXPECT_EQ(formats, (std::map<std::string, int>{{"catboost-cbm", 18},
                                                 {"catboost-json", 6},
                                                 {"lightgbm-json", 6},
                                                 {"lightgbm-text", 17},
                                                 {"onnx", 58},
                                                 {"skops", 82},
                                                 {"treelite", 22},
                                                 {"xgboost-json", 38},
                                                 {"xgboost-ubj", 10},
                                                 {"ydf", 22}}));
}

/// Every folder of the zoo is read by a test above or by test_pmml_answers.cpp, or holds a PMML document of CatBoost's,
/// which is refused by name.
TEST(Zoo, EveryFolderIsReadOrRefused) {
  if (!fs::exists(zoo() / "formats")) GTEST_SKIP() << "no zoo at " << zoo() << ": set FORESTVM_ZOO";
  std::set<fs::path> read;
  for (const ModelFile& file : support::every_model(zoo() / "formats")) read.insert(file.path.parent_path());
  for (const support::PmmlFolder& folder : support::pmml_folders()) read.insert(folder.path);
  for (const fs::directory_entry& folder : fs::directory_iterator(zoo() / "formats")) {
    if (read.contains(folder.path())) continue;
    const fs::path file = folder.path() / "model.pmml";
    ASSERT_TRUE(fs::exists(file)) << folder.path() << ": no test reads the model here";
    const Result<Model> model = load_model(file.string());
    ASSERT_FALSE(model.ok()) << file << ": this document is read now: add it to support::pmml_folders";
    EXPECT_NE(model.error().text().find("CatBoost's PMML has lost digits"), std::string::npos)
        << model.error().text();
  }
}

}  // namespace
}  // namespace forestvm::test::test_trainer_answers
