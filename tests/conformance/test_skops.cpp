// scikit-learn's models from .skops files, compiled: the reference predictor's answers for float64 rows, which
// tests/frontend/test_trainer_answers.cpp compares with scikit-learn's.
#include <gtest/gtest.h>

#include <forestvm/load.hpp>

#include "support/model_folders.hpp"
#include "support/test_name.hpp"
#include "wide_conformance.hpp"

namespace forestvm::test::test_skops {
namespace {

namespace fs = std::filesystem;
using support::ModelFile;

class SkopsModel : public testing::TestWithParam<ModelFile> {};

TEST_P(SkopsModel, CompiledAnswersAreTheReferences) {
  const ModelFile& file = GetParam();
  const Result<Model> model = load_model(file.path.string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  const support::Rows rows = support::read_rows(file.path, *model);
  check_wide_rows(*model, file.name, rows.values, rows.count);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SkopsModel);

constexpr auto test_name = [](const auto& test) { return support::test_name(test.param.name); };
INSTANTIATE_TEST_SUITE_P(Repository, SkopsModel,
                         testing::ValuesIn(support::skops_files(fs::path(FORESTVM_TEST_DATA) / "skops")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Zoo, SkopsModel, testing::ValuesIn(support::skops_files(support::zoo() / "formats")),
                         test_name);

}  // namespace
}  // namespace forestvm::test::test_skops
