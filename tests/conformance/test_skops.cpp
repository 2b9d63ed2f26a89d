// scikit-learn's models from .skops files, compiled: the reference predictor's answers for float64 rows, which
// test_skops_load.cpp compares with scikit-learn's.
#include <gtest/gtest.h>

#include <forestvm/load.hpp>

#include "support/schedule_case.hpp"
#include "support/sklearn_folders.hpp"
#include "wide_conformance.hpp"

namespace forestvm::test {
namespace {

using support::SklearnFolder;

class SkopsModel : public testing::TestWithParam<SklearnFolder> {};

TEST_P(SkopsModel, CompiledAnswersAreTheReferences) {
  const SklearnFolder& folder = GetParam();
  const Result<Model> model = load_model(folder.model.string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  check_wide_rows(*model, folder.name, folder.rows, folder.count);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SkopsModel);
INSTANTIATE_TEST_SUITE_P(Folders, SkopsModel, testing::ValuesIn(support::sklearn_folders()),
                         [](const auto& test) { return support::test_name(test.param.name); });

}  // namespace
}  // namespace forestvm::test
