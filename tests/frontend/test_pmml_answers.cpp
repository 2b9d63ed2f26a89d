// PMML models of the repository and the zoo: the reference predictor's answers are JPMML-Evaluator's, for all rows.
#include <gtest/gtest.h>

#include <string>

#include <forestvm/load.hpp>

#include "support/pmml_folders.hpp"
#include "support/test_name.hpp"

namespace forestvm::test::test_pmml_answers {
namespace {

using support::PmmlFolder;

class PmmlAnswersOf : public testing::TestWithParam<PmmlFolder> {};

TEST_P(PmmlAnswersOf, AreJpmmls) {
  const Result<Model> model = load_model((GetParam().path / "model.pmml").string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  EXPECT_EQ(difference_from_jpmml(GetParam(), *model), "");
}

INSTANTIATE_TEST_SUITE_P(Folders, PmmlAnswersOf, testing::ValuesIn(support::pmml_folders()),
                         [](const auto& test) { return support::test_name(test.param.name); });

TEST(PmmlFolders, AreThere) { EXPECT_GE(support::pmml_folders().size(), 21u); }

}  // namespace
}  // namespace forestvm::test::test_pmml_answers
