// See wide_conformance.hpp.
#include "wide_conformance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>
#include <span>

#include <forestvm/backend.hpp>
#include <forestvm/compile.hpp>
#include <forestvm/internal/emulator.hpp>
#include <forestvm/internal/reference.hpp>
#include <forestvm/named_schedules.hpp>

#include "random_schedule.hpp"
#include "support/floats.hpp"
#include "support/targets_here.hpp"

namespace forestvm::test {
namespace {

constexpr const char* kMappedTrees =
    "tile(batch, b0, b1, 4); tile(tree, t0, t, 12); tile(t, t1, t2, 3); reorder(b0, t0, t1, t2, b1); "
    "gpuDimension(b0, grid.x); gpuDimension(t1, block.y); cache(b0); cache(t0); sharedReduce(t1)";
constexpr const char* kMappedCodes =
    "layout(tree, sparse); encode(u8); tile(batch, b0, b1, 8); reorder(b0, b1, tree); "
    "gpuDimension(b0, grid.x); gpuDimension(b1, block.x)";

/// Loops that are mapped to a GPU launch run on the emulator.
constexpr const char* kSchedules[] = {
    "reorder(tree, batch)",
    "tile(batch, b0, b1, 8); reorder(b0, tree, b1); interleave(b1)",
    "encode(u8); tile(batch, b0, b1, 64); reorder(b0, tree, b1); parallel(b0)",
    "layout(tree, array); unrollWalk(tree, 4)",
    "layout(tree, sparse); interleave(tree)",
    "layout(tree, reorg); interleave(tree)",
    "layout(tree, tables)",
    "layout(tree, treeTables)",
    "layout(tree, topTables)",
    "tileTree(tree, 4, uniform); layout(tree, array)",
    "tileTree(tree, 8, probability); layout(tree, sparse)",
    "tileTree(tree, 4, uniform); layout(tree, reorg)",
    "tile(batch, b0, b1, 8); reorder(b0, b1, tree); gpuDimension(b0, grid.x); gpuDimension(b1, block.x)",
    kMappedTrees,
    kMappedCodes,
};
constexpr int kRandomSchedules = 6, kRandomMappedSchedules = 2;
constexpr std::size_t kWideEmulatedRows = 24;

std::vector<Schedule> schedules_for(const Model& model, const std::string& name) {
  std::vector<Schedule> schedules{{}, automatic_schedule(model)};
  for (const char* text : kSchedules) schedules.push_back(*parse_schedule(text));
  Dice dice(std::hash<std::string>()(name));
  const auto trees = static_cast<std::uint32_t>(model.trees.size());
  for (int i = 0; i < kRandomSchedules; ++i) schedules.push_back(random_schedule(dice, trees, {}));
  for (int i = 0; i < kRandomMappedSchedules; ++i)
    schedules.push_back(random_schedule(dice, trees, {.mapped = true}));
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

void compare(const Predictor& predictor, const Model& model, const RowBlock& rows,
             const Reference& expected) {
  const auto context = predictor.make_context();
  std::vector<std::int32_t> leaves(expected.leaf.size());
  ASSERT_TRUE(predictor.predict_leaf(*context, rows, leaves.data()).ok());
  EXPECT_EQ(leaves, expected.leaf);
  const bool in_order = predictor.program().meta().sums_in_model_order != 0;
  const bool wide = model.score_type == ScalarType::Float64;
  const double other_order = wide ? 1e-12 : 1e-5;
  expect_near(predicted(predictor, model, rows, OutputKind::Raw, expected.raw.size()), expected.raw,
              in_order ? 0 : other_order, "raw score");
  expect_near(predicted(predictor, model, rows, OutputKind::Value, expected.value.size()), expected.value,
              !in_order ? other_order
              : wide    ? 0x1p-51
                        : 0x1p-22,
              "value");
  if (model.class_rule == ClassRule::None || !in_order) return;
  std::vector<std::int64_t> labels(expected.label.size());
  ASSERT_TRUE(predictor.predict_class(*context, rows, labels.data()).ok());
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (!std::isnan(expected.value[i * expected.value_width / expected.label_width])) {
      EXPECT_EQ(labels[i], expected.label[i]) << "label " << i;
    }
}

/// Compares one model's programs with the reference predictor.
class WideRows {
 public:
  WideRows(const Model& model, const std::vector<double>& rows, std::size_t count)
      : model_(model), rows_(rows), count_(count) {}

  void check(const Schedule& schedule) {
    const auto compiled = compile(model_, schedule);
    if (!compiled.ok()) {
      EXPECT_EQ(compiled.error().code, ErrorCode::Refused);
      std::cout << "  [ refused  ] " << compiled.error().text() << "\n";
      return;
    }
    if (compiled->program.mapped()) {
      const auto predictor = emulator_backend(compiled->program, {.seed = 1 + emulated_});
      if (!predictor.ok()) {
        EXPECT_EQ(predictor.error().code, ErrorCode::Refused);
        std::cout << "  [ refused  ] " << predictor.error().text() << "\n";
        return;
      }
      ++emulated_;
      compare_first(**predictor, kWideEmulatedRows);
      return;
    }
    ++on_host_;
    for (const std::string& target : support::targets_here()) {
      SCOPED_TRACE("target " + target);
      const auto predictor = host_backend(compiled->program, {2, target});
      ASSERT_TRUE(predictor.ok()) << predictor.error().text();
      compare_first(**predictor, count_);
    }
  }

  std::size_t on_host() const { return on_host_; }
  std::size_t emulated() const { return emulated_; }

 private:
  void compare_first(const Predictor& predictor, std::size_t most) {
    const std::size_t count = std::min(count_, most);
    std::optional<Result<Reference>>& expected = expected_[count];
    if (!expected)
      expected = reference_predict(model_, std::span(rows_).first(count * model_.num_features), count);
    ASSERT_TRUE(expected->ok()) << expected->error().text();
    compare(predictor, model_, RowBlock{rows_.data(), count, model_.num_features, RowType::Float64},
            **expected);
  }

  const Model& model_;
  const std::vector<double>& rows_;
  std::size_t count_;
  std::map<std::size_t, std::optional<Result<Reference>>>
      expected_;  ///< Answers for the first rows, by number.
  std::size_t on_host_ = 0, emulated_ = 0;
};

}  // namespace

void check_wide_rows(const Model& model, const std::string& name, const std::vector<double>& rows,
                     std::size_t count) {
  WideRows wide(model, rows, count);
  for (const Schedule& schedule : schedules_for(model, name)) {
    SCOPED_TRACE(print(schedule));
    wide.check(schedule);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(wide.on_host(), 4u);
  EXPECT_GE(wide.emulated(), 1u);
}

}  // namespace forestvm::test
