// Options of calls: the refused ones are named, and both types of margins give one answer.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/emulator.hpp>

#include "vm/small_program.hpp"

namespace forestvm::test::test_call_options {
namespace {

constexpr std::size_t kRows = 5;

/// Returns a forest of three outputs that takes margins and may stop early.
Model forest(ScalarType type = ScalarType::Float32) {
  Model model = small_forest();
  model.row_type = model.score_type = type;
  model.takes_margins = true;
  model.early_stop = EarlyStopRule::Lead;
  return model;
}

Program keeping(const Model& model) {
  CompileOptions options;
  options.keeps_leaves = true;
  return compile(model, *parse_schedule("encode(u8)"), options)->program;
}

/// Predicts kRows rows with options; returns the raw scores, or the error's text.
std::string outcome(const Program& program, const CallOptions& options, OutputKind output = OutputKind::Raw,
                    std::vector<float>* raw = nullptr) {
  const auto predictor = program.mapped() ? emulator_backend(program) : host_backend(program);
  const auto context = (*predictor)->make_context();
  const std::vector<float> rows = small_rows(kRows, 3);
  std::vector<float> out(kRows * 6);
  const bool leaf = output == OutputKind::Leaf;
  const auto done = (*predictor)
                        ->predict_with(*context, RowBlock{rows.data(), kRows, 3}, output,
                                       leaf ? ResultType::Int32 : ResultType::Float32, options, out.data());
  if (raw != nullptr) *raw = out;
  return done.ok() ? "" : done.error().text();
}

TEST(CallOptions, MarginsOfBothTypesGiveOneAnswer) {
  const std::vector<float> narrow = {1, -2, 0.5, 4, 0, -0.0f, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const std::vector<double> wide(narrow.begin(), narrow.end());
  const Program program = compiled(forest(), "encode(u8)");
  std::vector<float> a, b, none;
  EXPECT_EQ(outcome(program, {{narrow.data(), kRows, 3, false}, {}}, OutputKind::Raw, &a), "");
  EXPECT_EQ(outcome(program, {{wide.data(), kRows, 3, true}, {}}, OutputKind::Raw, &b), "");
  EXPECT_EQ(outcome(program, {}, OutputKind::Raw, &none), "");
  EXPECT_EQ(a, b);
  EXPECT_NE(a, none);
}

TEST(CallOptions, MarginsAreChecked) {
  std::vector<double> margins(kRows * 3, 0.25);
  const BaseMargin good{margins.data(), kRows, 3, true};
  const Program program = compiled(forest(), "");
  const auto refusal = [&](std::size_t rows, std::size_t outputs) {
    return outcome(program, {{margins.data(), rows, outputs, true}, {}});
  };
  EXPECT_EQ(refusal(4, 3), "base margins: have the shape (4, 3), the raw scores of these rows (5, 3)");
  EXPECT_EQ(refusal(5, 1), "base margins: have the shape (5, 1), the raw scores of these rows (5, 3)");
  EXPECT_EQ(outcome(program, {good, {}}, OutputKind::Leaf),
            "base margins: leaf numbers do not depend on them");
  margins[7] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refusal(5, 3), "base margins: row 2, output 1: nan is not finite");
  margins[7] = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(refusal(5, 3), "base margins: row 2, output 1: -inf is not finite");
  margins[7] = 1e300;
  EXPECT_EQ(refusal(5, 3),
            "base margins: row 2, output 1: 1e+300 is beyond float32, in which this model sums");
  EXPECT_EQ(outcome(compiled(forest(ScalarType::Float64), ""), {good, {}}), "");
}

TEST(CallOptions, MarginsAreForSomeModelsAndPrograms) {
  const std::vector<float> margins(kRows * 3);
  const CallOptions options{{margins.data(), kRows, 3, false}, {}};
  EXPECT_EQ(
      outcome(compiled(small_forest(), ""), options),
      "base margins: are for models of XGBoost, and of LightGBM if they do not average; this one is of a test");
  EXPECT_EQ(
      outcome(compiled(forest(), "", Contract::Reproducible), options),
      "base margins: the program counts sums exactly (contract reproducible), in units of which a margin need "
      "be no multiple: compile the model with another contract");
  const Program mapped =
      compiled(forest(), "tile(batch, b0, b1, 8); gpuDimension(b0, grid.x); gpuDimension(b1, block.x)");
  EXPECT_EQ(outcome(mapped, options), "");
  EXPECT_EQ(outcome(mapped, {{}, EarlyStop{}}).substr(0, 11), "early stop:");
}

TEST(CallOptions, EarlyStopIsChecked) {
  Model wide = forest();
  wide.score_type = ScalarType::Float64;
  const Program program = keeping(wide);
  const auto refusal = [&](double margin, std::uint32_t every) {
    return outcome(program, {{}, EarlyStop{margin, every}});
  };
  EXPECT_EQ(refusal(0.5, 1), "");
  EXPECT_EQ(refusal(1e9, UINT32_MAX), "");
  EXPECT_EQ(refusal(-1, 1), "early stop: a margin of -1, expected 0 or more");
  EXPECT_EQ(refusal(std::nan(""), 1), "early stop: a margin of nan, expected 0 or more");
  EXPECT_EQ(refusal(1, 0), "early stop: after every 0 rounds, expected 1 or more");
  EXPECT_EQ(outcome(program, {{}, EarlyStop{}}, OutputKind::Leaf),
            "early stop: leaf numbers are of all trees");
  EXPECT_EQ(
      outcome(compiled(forest(), ""), {{}, EarlyStop{}}),
      "early stop: the program does not keep each tree's leaf: compile the model with --with early-stop "
      "(CompileOptions::keeps_leaves, Python's keep_leaves=True)");
  EXPECT_EQ(outcome(keeping(forest()), {{}, EarlyStop{}}),
            "early stop: the program adds no float64 scores, as LightGBM does");
  EXPECT_EQ(
      outcome(keeping(small_forest()), {{}, EarlyStop{}}),
      "early stop: is for LightGBM's models of classes and ranks; this one (a test, multi:softprob) needs all "
      "its trees");
}

}  // namespace
}  // namespace forestvm::test::test_call_options
