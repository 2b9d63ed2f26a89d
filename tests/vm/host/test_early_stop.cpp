// An early stop against the scores of stages: a row gets the raw scores after the first rounds that decide it. Rows
// that are decided leave the walks, so all forms of rows, numbers of threads and ways to read rows are tried.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/core/early_stop.hpp>
#include <forestvm/core/encoder.hpp>

#include "support/small_models.hpp"
#include "support/targets_here.hpp"
#include "vm/host/targets/target.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_early_stop {
namespace {

constexpr std::size_t kRows = 700;

Model stopping_model(EarlyStopRule rule, bool linear) {
  const bool lead = rule == EarlyStopRule::Lead;
  Model model =
      small_forest({.trees = lead ? 180u : 90u, .features = 5, .outputs = lead ? 3u : 1u, .depth = 4});
  model.score_type = ScalarType::Float64;  // as LightGBM's
  model.round_begins.clear();
  for (std::uint32_t t = 0; t <= model.trees.size(); t += model.num_outputs) model.round_begins.push_back(t);
  if (!lead) {
    model.transform = Transform::Identity;
    model.class_rule = ClassRule::None;
    model.class_labels.clear();
  }
  if (linear) support::make_linear(model);
  model.early_stop = rule;
  model.takes_margins = true;
  return model;
}

Program keeping(const Model& model, const std::string& schedule) {
  CompileOptions options;
  options.keeps_leaves = true;
  return compiled(model, schedule, options);
}

std::vector<double> scores_of(const Predictor& predictor, const AnyRows& rows, OutputKind output,
                              const CallOptions& options) {
  const auto context = predictor.make_context();
  std::vector<double> out(row_count(rows) * output_width(predictor.program(), output, options));
  const auto done = predictor.predict_with(*context, rows, output, ResultType::Float64, options, out.data());
  EXPECT_TRUE(done.ok()) << done.error().text();
  return out;
}

/// Returns the bits of numbers, some of which are NaN. Which NaN a sum of infinities is does not matter.
std::vector<std::uint64_t> bits_of(const std::vector<double>& numbers) {
  std::vector<std::uint64_t> bits;
  for (const double number : numbers)
    bits.push_back(std::isnan(number) ? 1 : std::bit_cast<std::uint64_t>(number));
  return bits;
}

/// Returns the scores of each row's first stage that is decided, or of its last one.
std::vector<double> first_decided(const Program& program, const std::vector<double>& staged, double margin) {
  const std::uint32_t outputs = program.meta().num_outputs;
  const std::size_t width = staged.size() / kRows;
  std::vector<double> expected;
  for (std::size_t row = 0; row < kRows; ++row) {
    std::size_t at = row * width;
    const std::size_t last = at + width - outputs;
    while (at != last && !is_decided(program.meta().early_stop, staged.data() + at, outputs, margin))
      at += outputs;
    for (std::uint32_t k = 0; k < outputs; ++k) expected.push_back(staged[at + k]);
  }
  return expected;
}

/// The rows in all forms that read rows differently.
struct Forms {
  explicit Forms(std::size_t width) : floats(small_rows(kRows, static_cast<std::uint32_t>(width))) {
    doubles.assign(floats.begin(), floats.end());
    turned.resize(doubles.size());
    offsets = {0};
    for (std::size_t i = 0; i < doubles.size(); ++i) {
      turned[i % width * kRows + i / width] = doubles[i];
      columns.push_back(static_cast<std::int32_t>(i % width));
      if ((i + 1) % width == 0) offsets.push_back(static_cast<std::int64_t>(i + 1));
    }
    all = {{"float32", RowBlock{floats.data(), kRows, width}},
           {"float64", RowBlock{doubles.data(), kRows, width, RowType::Float64}},
           {"columns", RowBlock{turned.data(), kRows, 1, RowType::Float64, kRows}},
           {"sparse", CsrRows{kRows, offsets.data(), columns.data(), doubles.data(), doubles.size(),
                              Absent::Zero, RowType::Float64}}};
  }
  std::vector<float> floats;
  std::vector<double> doubles, turned;
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> columns;
  std::vector<std::pair<const char*, AnyRows>> all;
};

/// Walks of the last two keep leaves, which are added at the end; others add them to the sums.
const char* const kSchedules[] = {"",
                                  "encode(u8)",
                                  "encode(u8); parallel(batch)",
                                  "layout(tree, array)",
                                  "layout(tree, sparse); parallel(batch)",
                                  "plan(8); layout(tree, sparse); plan(BATCH); encode(u8)",
                                  "tile(tree, t0, t1, 8); layout(tree, sparse8)",
                                  "accumulate(leaves); encode(u8)",
                                  "orderTrees(depth)"};

void check_stops(const Model& model) {
  const Forms forms(model.num_features);
  for (const char* const schedule : kSchedules)
    for (const unsigned threads : {1u, 3u}) {
      const Program program = keeping(model, schedule);
      const auto predictor = host_backend(program, {.threads = threads});
      ASSERT_TRUE(predictor.ok()) << predictor.error().text();
      for (const auto& [form, rows] : forms.all)
        for (const EarlyStop stop :
             {EarlyStop{0, 1}, EarlyStop{0.5, 7}, EarlyStop{2, 4}, EarlyStop{1e9, 10}}) {
          SCOPED_TRACE(std::string(schedule) + ", " + form + ", " + std::to_string(threads) +
                       " threads, margin " + std::to_string(stop.margin));
          const std::vector<double> staged =
              scores_of(**predictor, rows, OutputKind::Staged, {.every = stop.every});
          EXPECT_EQ(bits_of(scores_of(**predictor, rows, OutputKind::Raw, {.early_stop = stop})),
                    bits_of(first_decided(program, staged, stop.margin)));
        }
    }
}

TEST(EarlyStop, GivesTheScoresOfTheFirstDecidedStage) {
  check_stops(stopping_model(EarlyStopRule::Distance, false));
  check_stops(stopping_model(EarlyStopRule::Lead, false));
}

/// Returns a model of `rounds` trees for each output. Those of the first output add 0.25, the others nothing.
Model climbing_model(EarlyStopRule rule, std::uint32_t outputs, std::uint32_t rounds) {
  Model model = support::model_of({}, outputs);
  model.score_type = ScalarType::Float64;
  model.base.assign(outputs, 0);
  model.round_begins = {0};
  model.early_stop = rule;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::uint32_t k = 0; k < outputs; ++k) {
      model.trees.push_back(support::leaf(k == 0 ? 0.25 : 0));
      model.trees.back().output = k;
    }
    model.round_begins.push_back(static_cast<std::uint32_t>(model.trees.size()));
  }
  return model;
}

/// Rows from one block, from many, and from all, packed into other memory and in place.
TEST(EarlyStop, PacksTheCodesOfSomeRows) {
  std::mt19937 random(1);
  for (const std::string& name : support::targets_here())
    for (const std::size_t columns : {1u, 5u})
      for (const std::uint32_t one_of : {1u, 2u, 7u, 200u}) {
        SCOPED_TRACE(name + ", one row of " + std::to_string(one_of));
        std::vector<std::uint8_t> codes(code_bytes(kRows, columns) + kCodeSlack);
        for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(random());
        std::vector<std::uint32_t> rows;
        for (std::uint32_t row = 0; row < kRows; ++row)
          if (random() % one_of == 0) rows.push_back(row);
        const auto code = [&](const std::vector<std::uint8_t>& of, std::size_t row, std::size_t column) {
          return of[code_offset(row, columns) + column * kCodeRows];
        };
        std::vector<std::uint8_t> packed(codes.size()), in_place = codes;
        const auto pack = (*host::find_target(name))->pack;
        const auto count = static_cast<std::uint32_t>(rows.size());
        pack({codes.data(), rows.data(), count, columns, packed.data()});
        pack({in_place.data(), rows.data(), count, columns, in_place.data()});
        for (std::size_t i = 0; i < rows.size(); ++i)
          for (std::size_t c = 0; c < columns; ++c) {
            ASSERT_EQ(code(packed, i, c), code(codes, rows[i], c)) << i << ' ' << c;
            ASSERT_EQ(code(in_place, i, c), code(codes, rows[i], c)) << i << ' ' << c;
          }
      }
}

TEST(EarlyStop, ScoresAtTheMarginAreNotDecided) {
  for (const EarlyStopRule rule : {EarlyStopRule::Distance, EarlyStopRule::Lead}) {
    const std::uint32_t outputs = rule == EarlyStopRule::Lead ? 3 : 1;
    const Model model = climbing_model(rule, outputs, 9);
    const auto predictor = host_backend(keeping(model, ""));
    ASSERT_TRUE(predictor.ok()) << predictor.error().text();
    const std::vector<float> rows(model.num_features);
    const RowBlock block{rows.data(), 1, rows.size()};
    const double each =
        rule == EarlyStopRule::Lead ? 0.25 : 0.5;  // by which the score comes nearer to the margin
    for (const auto& [margin, after] : {std::pair(each, 2), std::pair(2 * each, 3), std::pair(2.5 * each, 3)})
      EXPECT_EQ(scores_of(**predictor, block, OutputKind::Raw, {.early_stop = EarlyStop{margin, 1}})[0],
                0.25 * after)
          << margin;
  }
}

TEST(EarlyStop, OfLinearLeaves) { check_stops(stopping_model(EarlyStopRule::Lead, true)); }

TEST(EarlyStop, WithoutTreesGivesTheBaseScores) {
  Model model = stopping_model(EarlyStopRule::Distance, false);
  model.trees.clear();
  model.round_begins = {0};
  model.base = {0.75};
  const Forms forms(model.num_features);
  const auto predictor = host_backend(keeping(model, "encode(u8)"));
  ASSERT_TRUE(predictor.ok()) << predictor.error().text();
  for (const auto& [form, rows] : forms.all)
    EXPECT_EQ(scores_of(**predictor, rows, OutputKind::Raw, {.early_stop = EarlyStop{0, 1}}),
              std::vector<double>(kRows, 0.75))
        << form;
}

TEST(EarlyStop, OfRoundsAndMargins) {
  const Model model = stopping_model(EarlyStopRule::Lead, false);
  const Forms forms(model.num_features);
  const std::vector<double> margins(kRows * 3, 0.125);
  const Program program = keeping(model, "encode(u8)");
  const auto predictor = host_backend(program);
  CallOptions options{.base_margin = {margins.data(), kRows, 3, true}, .rounds = Rounds{5, 50}, .every = 3};
  const std::vector<double> staged = scores_of(**predictor, forms.all[0].second, OutputKind::Staged, options);
  options.early_stop = EarlyStop{1, 3};
  EXPECT_EQ(bits_of(scores_of(**predictor, forms.all[0].second, OutputKind::Raw, options)),
            bits_of(first_decided(program, staged, 1)));
}

}  // namespace
}  // namespace forestvm::test::test_early_stop
