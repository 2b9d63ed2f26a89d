// scikit-learn's models from .skops files, compiled: the reference predictor's answers for float64 rows, which
// tests/frontend/test_trainer_answers.cpp compares with scikit-learn's, under schedules that are drawn differently for each model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/load.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/reference.hpp>

#include "random_schedule.hpp"
#include "support/floats.hpp"
#include "support/model_folders.hpp"
#include "support/schedule_case.hpp"

namespace forestvm::test {
namespace {

namespace fs = std::filesystem;
using support::ModelFile;

class SkopsModel : public testing::TestWithParam<ModelFile> {};

std::vector<Schedule> schedules_for(const Model& model, const std::string& name) {
  std::vector<Schedule> schedules{{}, automatic_schedule(model)};
  for (const char* text :
       {"reorder(tree, batch)", "tile(batch, b0, b1, 8); reorder(b0, tree, b1); interleave(b1)",
        "encode(u8); tile(batch, b0, b1, 64); reorder(b0, tree, b1); parallel(b0)"})
    schedules.push_back(*parse_schedule(text));
  Dice dice(std::hash<std::string>()(name));
  for (int i = 0; i < 6; ++i)
    schedules.push_back(random_schedule(dice, static_cast<std::uint32_t>(model.trees.size()), {}));
  return schedules;
}

void compare(const Program& program, const Model& model, const support::Rows& given,
             const Reference& expected) {
  const auto predictor = host_backend(program, {2, "auto"});
  ASSERT_TRUE(predictor.ok()) << predictor.error().text();
  const auto context = (*predictor)->make_context();
  const RowBlock rows{given.values.data(), given.count, model.num_features, RowType::Float64};
  std::vector<double> raw(expected.raw.size()), value(expected.value.size());
  std::vector<std::int32_t> leaves(expected.leaf.size());
  ASSERT_TRUE((*predictor)->predict_wide(*context, rows, OutputKind::Raw, raw.data()).ok());
  ASSERT_TRUE((*predictor)->predict_wide(*context, rows, OutputKind::Value, value.data()).ok());
  ASSERT_TRUE((*predictor)->predict_leaf(*context, rows, leaves.data()).ok());
  EXPECT_EQ(leaves, expected.leaf);
  const bool in_order = program.meta().sums_in_model_order != 0;
  for (std::size_t i = 0; i < raw.size(); ++i)
    if (in_order)
      EXPECT_TRUE(support::same_bits(raw[i], expected.raw[i])) << "raw score " << i;
    else
      EXPECT_NEAR(raw[i], expected.raw[i], 1e-12 * (1 + std::abs(expected.raw[i]))) << "raw score " << i;
  for (std::size_t i = 0; i < value.size(); ++i)
    EXPECT_NEAR(value[i], expected.value[i], (in_order ? 0x1p-51 : 1e-12) * (1 + std::abs(expected.value[i])))
        << "value " << i;
  if (model.class_rule == ClassRule::None || !in_order) return;
  std::vector<std::int64_t> labels(expected.label.size());
  ASSERT_TRUE((*predictor)->predict_class(*context, rows, labels.data()).ok());
  EXPECT_EQ(labels, expected.label);
}

TEST_P(SkopsModel, CompiledAnswersAreTheReferences) {
  const ModelFile& file = GetParam();
  const Result<Model> model = load_model(file.path.string());
  ASSERT_TRUE(model.ok()) << model.error().text();
  const support::Rows rows = support::read_rows(file.path, *model);
  const auto expected = reference_predict(*model, rows.values, rows.count);
  ASSERT_TRUE(expected.ok()) << expected.error().text();
  std::size_t compiled_schedules = 0;
  for (const Schedule& schedule : schedules_for(*model, file.name)) {
    SCOPED_TRACE(print(schedule));
    const auto compiled = compile(*model, schedule);
    if (!compiled.ok()) {
      std::cout << "  [ refused  ] " << compiled.error().text() << "\n";
      continue;
    }
    ++compiled_schedules;
    compare(compiled->program, *model, rows, *expected);
  }
  EXPECT_GE(compiled_schedules, 4u);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SkopsModel);

constexpr auto test_name = [](const auto& test) { return support::test_name(test.param.name); };
INSTANTIATE_TEST_SUITE_P(Repository, SkopsModel,
                         testing::ValuesIn(support::skops_files(fs::path(FORESTVM_TEST_DATA) / "skops")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Zoo, SkopsModel, testing::ValuesIn(support::skops_files(support::zoo() / "formats")),
                         test_name);

}  // namespace
}  // namespace forestvm::test
