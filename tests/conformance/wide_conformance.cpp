// See wide_conformance.hpp.
#include "wide_conformance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/named_schedules.hpp>
#include <forestvm/reference.hpp>

#include "random_schedule.hpp"
#include "support/floats.hpp"

namespace forestvm::test {
namespace {

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

/// Predicts in the model's own type of scores.
std::vector<double> predicted(const Predictor& predictor, const Model& model, const RowBlock& rows,
                              OutputKind output, std::size_t size) {
  const auto context = predictor.make_context();
  std::vector<double> wide(size);
  if (model.score_type == ScalarType::Float64) {
    EXPECT_TRUE(predictor.predict_wide(*context, rows, output, wide.data()).ok());
    return wide;
  }
  std::vector<float> narrow(size);
  EXPECT_TRUE(predictor.predict(*context, rows, output, narrow.data()).ok());
  return {narrow.begin(), narrow.end()};
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected, double bound,
                 const char* what) {
  for (std::size_t i = 0; i < actual.size(); ++i)
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(actual[i])) << what << " " << i;
    else if (bound == 0)
      EXPECT_TRUE(support::same_bits(actual[i], expected[i])) << what << " " << i;
    else
      EXPECT_NEAR(actual[i], expected[i], bound * (1 + std::abs(expected[i]))) << what << " " << i;
}

void compare(const Program& program, const Model& model, const RowBlock& rows, const Reference& expected) {
  const auto predictor = host_backend(program, {2, "auto"});
  ASSERT_TRUE(predictor.ok()) << predictor.error().text();
  const auto context = (*predictor)->make_context();
  std::vector<std::int32_t> leaves(expected.leaf.size());
  ASSERT_TRUE((*predictor)->predict_leaf(*context, rows, leaves.data()).ok());
  EXPECT_EQ(leaves, expected.leaf);
  const bool in_order = program.meta().sums_in_model_order != 0;
  const bool wide = model.score_type == ScalarType::Float64;
  const double other_order = wide ? 1e-12 : 1e-5;
  expect_near(predicted(**predictor, model, rows, OutputKind::Raw, expected.raw.size()), expected.raw,
              in_order ? 0 : other_order, "raw score");
  expect_near(predicted(**predictor, model, rows, OutputKind::Value, expected.value.size()), expected.value,
              !in_order ? other_order
              : wide    ? 0x1p-51
                        : 0x1p-22,
              "value");
  if (model.class_rule == ClassRule::None || !in_order) return;
  std::vector<std::int64_t> labels(expected.label.size());
  ASSERT_TRUE((*predictor)->predict_class(*context, rows, labels.data()).ok());
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (!std::isnan(expected.value[i * expected.value_width / expected.label_width])) {
      EXPECT_EQ(labels[i], expected.label[i]) << "label " << i;
    }
}

}  // namespace

void check_wide_rows(const Model& model, const std::string& name, const std::vector<double>& rows,
                     std::size_t count) {
  const auto expected = reference_predict(model, rows, count);
  ASSERT_TRUE(expected.ok()) << expected.error().text();
  const RowBlock block{rows.data(), count, model.num_features, RowType::Float64};
  std::size_t compiled_schedules = 0;
  for (const Schedule& schedule : schedules_for(model, name)) {
    SCOPED_TRACE(print(schedule));
    const auto compiled = compile(model, schedule);
    if (!compiled.ok()) {
      std::cout << "  [ refused  ] " << compiled.error().text() << "\n";
      continue;
    }
    ++compiled_schedules;
    compare(compiled->program, model, block, *expected);
  }
  EXPECT_GE(compiled_schedules, 4u);
}

}  // namespace forestvm::test
