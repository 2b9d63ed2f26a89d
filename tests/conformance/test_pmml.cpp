// Compares compiled PMML models with the reference predictor, which test_pmml_answers.cpp compares with JPMML.
#include <gtest/gtest.h>

#include <forestvm/load.hpp>

#include "support/pmml_folders.hpp"
#include "support/test_name.hpp"
#include "wide_conformance.hpp"

namespace forestvm::test::test_pmml {
namespace {

class PmmlModel : public testing::TestWithParam<support::PmmlFolder> {};

TEST_P(PmmlModel, CompiledAnswersAreTheReferences) {
  const Result<Model> model = load_model((GetParam().path / "model.pmml").string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  const support::PmmlAnswers answers = read_pmml_answers(GetParam(), *model);
  check_wide_rows(*model, GetParam().name, answers.rows, answers.count);
}

INSTANTIATE_TEST_SUITE_P(Folders, PmmlModel, testing::ValuesIn(support::pmml_folders()),
                         [](const auto& test) { return support::test_name(test.param.name); });

}  // namespace
}  // namespace forestvm::test::test_pmml
