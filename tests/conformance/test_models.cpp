// The models that the repository carries, under every schedule.
#include <gtest/gtest.h>

#include "model_conformance.hpp"
#include "support/schedule_case.hpp"

namespace forestvm::test {
namespace {

namespace fs = std::filesystem;

class RepositoryModel : public testing::TestWithParam<ModelFile> {};

TEST_P(RepositoryModel, AnswersAsItsTrainer) { check_model_file(GetParam(), {}); }

constexpr auto test_name = [](const auto& test) { return support::test_name(test.param.name); };
INSTANTIATE_TEST_SUITE_P(Real, RepositoryModel, testing::ValuesIn(model_files(FORESTVM_TEST_DATA, "")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Versions, RepositoryModel,
                         testing::ValuesIn(model_files(fs::path(FORESTVM_TEST_DATA) / "xgboost_versions",
                                                       "")),
                         test_name);

TEST(RepositoryModels, AreThere) {
  EXPECT_EQ(model_files(FORESTVM_TEST_DATA, "").size(), 3u);
  EXPECT_GE(model_files(fs::path(FORESTVM_TEST_DATA) / "xgboost_versions", "").size(), 30u);
}

}  // namespace
}  // namespace forestvm::test
