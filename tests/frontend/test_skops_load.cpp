// scikit-learn's models from .skops files: scikit-learn's own answers, and what is refused by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <forestvm/load.hpp>
#include <forestvm/reference.hpp>

#include "load_text.hpp"
#include "support/floats.hpp"
#include "support/sklearn_folders.hpp"

namespace forestvm::test {
namespace {

using support::sklearn_folders;
using support::SklearnFolder;

/// Returns true if the leaves or the base are logarithms, which NumPy rounds in its own way.
bool has_logarithms(const SklearnFolder& folder) {
  return folder.name.find("ada_logarithms") != std::string::npos ||
         folder.name.find("boosting_four") != std::string::npos;
}

/// Returns what AdaBoost divides sums of votes by to get its decision; 1 for other models.
double decision_divisor(const Model& model) {
  const bool votes = model.objective == "AdaBoostClassifier";
  return votes ? model.divisor / (model.num_outputs - 1) : 1;
}

/// Returns by how many units in the last place values may differ from scikit-learn's. Averages are equal. Exponentials are
/// NumPy's or SciPy's, which differ from the C library's by one unit; AdaBoost divides twice where the model divides once.
/// Votes by logarithms are up to 100 in size, and so are the units by which their exponentials differ.
std::int64_t bound_of(const Model& model, const SklearnFolder& folder) {
  if (model.transform == Transform::Average || model.transform == Transform::Identity) return 0;
  if (decision_divisor(model) == 1) return 2;
  return has_logarithms(folder) ? 64 : 4;
}

void compare_values(const SklearnFolder& folder, const Model& model, const Reference& predicted) {
  if (folder.value.empty()) return;
  ASSERT_EQ(predicted.value.size(), folder.value.size());
  for (std::size_t i = 0; i < folder.value.size(); ++i) {
    // Decisions are differences of two scores near 0.5: their last places are those of the scores.
    if (model.transform == Transform::AnomalyDecision)
      EXPECT_NEAR(predicted.value[i], folder.value[i], 0x1p-52) << "value " << i;
    else
      EXPECT_LE(support::ulps(predicted.value[i], folder.value[i]), bound_of(model, folder)) << "value " << i;
  }
}

void compare_raw(const SklearnFolder& folder, const Model& model, const Reference& predicted) {
  if (folder.raw.empty()) return;
  const double divisor = decision_divisor(model);
  const bool two_votes = divisor != 1 && model.num_outputs == 2;
  ASSERT_EQ(predicted.raw.size(), folder.raw.size() * (two_votes ? 2 : 1));
  for (std::size_t i = 0; i < folder.raw.size(); ++i) {
    const double raw = two_votes ? predicted.raw[2 * i + 1] / divisor - predicted.raw[2 * i] / divisor
                                 : predicted.raw[i] / divisor;
    if (has_logarithms(folder))
      EXPECT_NEAR(raw, folder.raw[i], 1e-14) << "raw score " << i;
    else
      EXPECT_TRUE(support::same_bits(raw, folder.raw[i]))
          << "raw score " << i << ": " << raw << ", " << folder.raw[i];
  }
}

class SkopsAnswers : public testing::TestWithParam<SklearnFolder> {};

TEST_P(SkopsAnswers, AreScikitLearns) {
  const SklearnFolder& folder = GetParam();
  const Result<Model> model = load_model(folder.model.string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  ASSERT_EQ(model->num_features, folder.features);
  const auto predicted = reference_predict(*model, folder.rows, folder.count);
  ASSERT_TRUE(predicted.ok()) << predicted.error().text();
  compare_values(folder, *model, *predicted);
  compare_raw(folder, *model, *predicted);
  if (!folder.leaves.empty()) {
    EXPECT_EQ(std::vector<std::int64_t>(predicted->leaf.begin(), predicted->leaf.end()), folder.leaves);
  }
  if (!folder.labels.empty()) {
    EXPECT_EQ(predicted->label, folder.labels);
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SkopsAnswers);
INSTANTIATE_TEST_SUITE_P(Folders, SkopsAnswers, testing::ValuesIn(sklearn_folders()), [](const auto& test) {
  std::string name = test.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace forestvm::test
