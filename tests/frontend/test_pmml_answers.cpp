// PMML models of the repository and the zoo: the reference predictor's answers are JPMML-Evaluator's, for all rows.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include <forestvm/load.hpp>
#include <forestvm/reference.hpp>

#include "support/floats.hpp"
#include "support/pmml_folders.hpp"
#include "support/schedule_case.hpp"

namespace forestvm::test {
namespace {

using support::PmmlFolder;

/// Returns whether a label of the model and a cell of JPMML's are one: JPMML writes whole numbers as 1 or 1.0.
bool same_label(const std::string& label, const std::string& cell) {
  return label == cell || label + ".0" == cell;
}

class PmmlAnswersOf : public testing::TestWithParam<PmmlFolder> {};

TEST_P(PmmlAnswersOf, AreJpmmls) {
  const Result<Model> model = load_model((GetParam().path / "model.pmml").string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  const support::PmmlAnswers expected = read_pmml_answers(GetParam(), *model);
  const auto actual = reference_predict(*model, expected.rows, expected.count);
  ASSERT_TRUE(actual.ok()) << actual.error().text();
  ASSERT_EQ(actual->value.size(), expected.value.size());
  // JPMML's exp, and pow in its float32, are Java's: they may differ by 1 ulp, and what follows by one more.
  const bool exact = model->transform == Transform::Identity || model->transform == Transform::Average;
  const std::size_t width = actual->value_width;
  for (std::size_t i = 0; i < expected.value.size(); ++i) {
    const double a = actual->value[i], b = expected.value[i];
    const bool is_float = model->score_type == ScalarType::Float32;
    const std::int64_t apart =
        is_float ? support::ulps(static_cast<float>(a), static_cast<float>(b)) : support::ulps(a, b);
    EXPECT_LE(apart, exact ? 0 : 2) << "row " << i / width << ": " << a << " instead of " << b;
  }
  ASSERT_EQ(actual->label.size(), expected.labels.size());
  for (std::size_t i = 0; i < expected.labels.size(); ++i)
    if (!std::isnan(expected.value[i * width])) {
      EXPECT_TRUE(
          same_label(model->class_labels[static_cast<std::size_t>(actual->label[i])], expected.labels[i]))
          << "row " << i << ": " << expected.labels[i];
    }
}

INSTANTIATE_TEST_SUITE_P(Folders, PmmlAnswersOf, testing::ValuesIn(support::pmml_folders()),
                         [](const auto& test) { return support::test_name(test.param.name); });

TEST(PmmlFolders, AreThere) { EXPECT_GE(support::pmml_folders().size(), 21u); }

}  // namespace
}  // namespace forestvm::test
