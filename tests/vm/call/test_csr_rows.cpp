// Sparse rows get the predictions of the equal dense rows, bit for bit: in every layout, whether walks read
// values, rank codes or, depending on plan and group, both. Malformed rows are refused with their place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <forestvm/internal/calls.hpp>

#include "support/layout_names.hpp"
#include "support/small_models.hpp"
#include "support/targets_here.hpp"
#include "vm/small_program.hpp"
#include "vm/sparse_rows.hpp"

namespace forestvm::test::test_csr_rows {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Compares all kinds of output, for calls of many lengths that begin at several rows.
void expect_as_dense(const Program& program, const BackendOptions& options, const SparseRows& rows) {
  const auto predictor = host_backend(program, options);
  ASSERT_TRUE(predictor.ok());
  const auto context = (*predictor)->make_context(), other = (*predictor)->make_context();
  for (const std::size_t count : {1u, 2u, 3u, 4u, 63u, 64u, 65u, 200u})
    for (const std::size_t first : {0u, 1u, 7u}) {
      if (first + count > rows.count()) continue;
      ASSERT_EQ(answers(**predictor, *context, rows.csr(first, count)),
                answers(**predictor, *other, rows.block(first, count)))
          << count << " rows from " << first << " on";
    }
}

void expect_as_dense(const Program& program) {
  for (const Absent absent : {Absent::Missing, Absent::Zero})
    for (const unsigned percent : {0u, 5u, 50u, 100u}) {
      SCOPED_TRACE(percent);
      const SparseRows rows = sparse_rows(210, program.meta().num_features, percent, absent);
      expect_as_dense(program, {}, rows);
      expect_as_dense(program, {.threads = 2}, rows);
    }
}

TEST(CsrRows, AsDenseInEveryKindOfProgram) {
  for (const RichCase& rich : rich_cases()) {
    SCOPED_TRACE(rich.schedule);
    expect_as_dense(compiled(forest_of(rich), rich.schedule, rich.contract));
  }
}

TEST(CsrRows, AsDenseInEveryLayout) {
  const Model model = small_forest({.trees = 9, .features = 30, .outputs = 3, .depth = 4});
  for (const std::string& layout : support::layout_names()) {
    unsigned compiled = 0;
    for (const char* encode : {"", "; encode(u8)", "; encode(u8); tile(batch, b0, b1, 24); parallel(b0)"}) {
      SCOPED_TRACE(layout + encode);
      const auto schedule = parse_schedule("layout(tree, " + layout + ")" + encode);
      const auto program = compile(model, *schedule, {});
      if (!program.ok()) continue;  // layouts of codes need encode(u8)
      ++compiled;
      expect_as_dense(program->program);
    }
    EXPECT_GE(compiled, 1u) << layout;
  }
}

TEST(CsrRows, AsDenseOnEveryTarget) {
  const Model model = small_forest({.trees = 40, .features = 30, .outputs = 3, .depth = 5});
  const SparseRows rows = sparse_rows(210, 30, 30);
  for (const std::string& target : support::targets_here())
    for (const char* schedule : {"encode(u8)", "layout(tree, sparse); interleave(batch)"})
      expect_as_dense(compiled(model, schedule), {.target = target}, rows);
}

const std::string kEachGroup = "tile(tree, t0, t1, 2); reorder(t0, batch, t1); specialize(t0); ";

/// Schedules in which the number of rows and the group of trees decide what a walk reads.
const std::vector<std::string> kMixed = {
    "plan(3); layout(tree, array); plan(BATCH); encode(u8)",
    "plan(3); encode(u8); plan(BATCH); layout(tree, array)",
    "plan(3); layout(tree, array); plan(64); encode(u8); plan(BATCH); layout(tree, sparse)",
    "split(tree, ta, tb, 4); encode(u8); layout(ta, reorg); layout(tb, tables)",
    "plan(2); split(tree, ta, tb, 4); encode(u8); layout(ta, reorg); plan(BATCH); encode(u8)",
    "plan(3); " + kEachGroup + "layout(tree, sparse); plan(BATCH); " + kEachGroup + "encode(u8)",
    "tile(batch, b0, b1, 8); cache(b0, 1); encode(u8)"};

TEST(CsrRows, AsDenseWherePlansDiffer) {
  for (const std::string& schedule : kMixed) {
    SCOPED_TRACE(schedule);
    expect_as_dense(compiled(small_forest({.trees = 9, .features = 8}), schedule));
  }
}

/// Returns the numbers of rows, among those tested, for which some walk reads values.
std::vector<std::uint32_t> values_read(const std::string& schedule) {
  const Program program = compiled(small_forest({.trees = 9, .features = 8}), schedule);
  const CodedPlans plans(program);
  std::vector<std::uint32_t> found;
  for (const std::uint32_t rows : {1u, 2u, 3u, 4u, 64u, 65u, 1u << 30})
    if (plans.reads_values(rows)) found.push_back(rows);
  return found;
}

TEST(CsrRows, AreMadeDenseOnlyWhereValuesAreRead) {
  using Counts = std::vector<std::uint32_t>;
  const Counts all{1, 2, 3, 4, 64, 65, 1u << 30};
  EXPECT_EQ(values_read("layout(tree, array)"), all);
  EXPECT_EQ(values_read("encode(u8)"), Counts{});
  EXPECT_EQ(values_read(kMixed[0]), (Counts{1, 2, 3}));
  EXPECT_EQ(values_read(kMixed[1]), (Counts{4, 64, 65, 1u << 30}));
  EXPECT_EQ(values_read(kMixed[2]), (Counts{1, 2, 3, 65, 1u << 30}));
  EXPECT_EQ(values_read(kMixed[3]), all);
  EXPECT_EQ(values_read(kMixed[4]), (Counts{1, 2}));
  EXPECT_EQ(values_read(kMixed[5]), (Counts{1, 2, 3}));
  EXPECT_EQ(values_read(kMixed[6]), Counts{});
}

/// Returns a forest that reads 20 of 4,000 features.
Model wide_forest() {
  Model model = small_forest({.trees = 30, .features = 20, .outputs = 3, .depth = 4});
  for (Tree& tree : model.trees)
    for (Node& node : tree.nodes) node.feature = node.feature * 200 + 3;
  model.num_features = 4000;
  model.feature_names.clear();
  return model;
}

TEST(CsrRows, AsDenseWithFewOfManyFeatures) {
  for (const char* schedule : {"encode(u8)", "layout(tree, array)", "layout(tree, sparse)"})
    for (const unsigned percent : {1u, 20u})
      expect_as_dense(compiled(wide_forest(), schedule), {}, sparse_rows(210, 4000, percent));
}

/// More rows than are made dense at once; the plan for the remaining rows reads codes.
TEST(CsrRows, AsDenseWhereACallTakesSeveralPasses) {
  const SparseRows rows = sparse_rows(5003, 4000, 1);
  for (const char* schedule :
       {"layout(tree, array)", "plan(1000); encode(u8); plan(BATCH)", "plan(4096); encode(u8); plan(BATCH)",
        "plan(1000); plan(BATCH); encode(u8)"}) {
    const auto predictor = host_backend(compiled(wide_forest(), schedule));
    EXPECT_EQ(answers(**predictor, rows.csr()), answers(**predictor, rows.block())) << schedule;
  }
}

/// LightGBM's zero_as_missing: zeros and tiny numbers are missing, whether they are present or absent.
TEST(CsrRows, ZerosAreMissingWhereTheModelSaysSo) {
  Model model = support::small_model("float64");
  for (Tree& tree : model.trees)
    for (Node& node : tree.nodes)
      if (node.feature != 2) node.missing = Missing::Zero;
  for (const char* schedule : {"encode(u8)", "layout(tree, array)", "layout(tree, sparse)"}) {
    const Program program = compiled(model, schedule);
    EXPECT_FALSE(program.zero_missing().empty());
    expect_as_dense(program);
    const float tiny = static_cast<float>(kTiny), more = std::nextafter(tiny, 1.0f);
    for (const Absent absent : {Absent::Missing, Absent::Zero}) {
      SparseRows rows = sparse_rows(210, 4, 70, absent);
      const float zeros[] = {0.0f, -0.0f, tiny, -tiny, more, -more, 1e-40f, kNan};
      for (std::size_t i = 0; i < rows.values.size(); ++i) rows.values[i] = zeros[i % std::size(zeros)];
      for (std::size_t row = 0; row < rows.count(); ++row)
        for (std::int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i)
          rows.dense[row * 4 + static_cast<std::size_t>(rows.columns[static_cast<std::size_t>(i)])] =
              rows.values[static_cast<std::size_t>(i)];
      expect_as_dense(program, {}, rows);
    }
  }
}

TEST(CsrRows, WriteDoublesToo) {
  Model model = small_forest();
  model.row_type = model.score_type = ScalarType::Float64;
  const SparseRows rows = sparse_rows(100, 3, 50);
  for (const char* schedule : {"encode(u8)", "layout(tree, array)"}) {
    const auto predictor = host_backend(compiled(model, schedule));
    const auto context = (*predictor)->make_context();
    std::vector<double> sparse(300), dense(300);
    ASSERT_TRUE((*predictor)->predict_wide(*context, rows.csr(), OutputKind::Raw, sparse.data()).ok());
    ASSERT_TRUE((*predictor)->predict_wide(*context, rows.block(), OutputKind::Raw, dense.data()).ok());
    EXPECT_EQ(sparse, dense);
  }
}

/// Returns the error of predicting three rows of a model of three features after `damage`.
std::string said(const char* schedule, const std::function<void(CsrRows&)>& damage) {
  static const std::int64_t offsets[] = {0, 2, 2, 5};
  static const std::int32_t columns[] = {0, 2, 1, 0, 2};
  static const float values[] = {1, 2, 3, 4, 5};
  CsrRows rows{3, offsets, columns, values, 5};
  damage(rows);
  const auto predictor = host_backend(compiled(small_forest(), schedule));
  std::vector<float> out(9);
  const auto done = (*predictor)->predict(*(*predictor)->make_context(), rows, OutputKind::Raw, out.data());
  if (done.ok()) return "fine";
  EXPECT_EQ(done.error().code, ErrorCode::Usage);
  return done.error().text();
}

TEST(CsrRows, RefusesWhatMakesNoSense) {
  for (const char* schedule : {"encode(u8)", "layout(tree, array)"}) {
    const auto offsets_say = [&](const std::vector<std::int64_t>& offsets) {
      return said(schedule, [&](CsrRows& rows) { rows.offsets = offsets.data(); });
    };
    const auto columns_say = [&](const std::vector<std::int32_t>& columns) {
      return said(schedule, [&](CsrRows& rows) { rows.columns = columns.data(); });
    };
    EXPECT_EQ(said(schedule, [](CsrRows&) {}), "fine");
    EXPECT_EQ(offsets_say({3, 3, 3, 3}), "fine");
    EXPECT_EQ(offsets_say({-1, 2, 2, 5}), "row 0: its first value is number -1, below 0");
    EXPECT_EQ(offsets_say({0, 2, 1, 5}), "row 1: its values end at 1, before they begin at 2");
    EXPECT_EQ(offsets_say({0, 2, INT64_MIN, 5}),
              "row 1: its values end at -9223372036854775808, before they begin at 2");
    EXPECT_EQ(offsets_say({0, 2, 2, 6}), "row 2: its values end at 6, there are 5");
    EXPECT_EQ(offsets_say({0, INT64_MAX, INT64_MAX, 5}),
              "row 0: its values end at 9223372036854775807, there are 5");
    EXPECT_EQ(columns_say({0, 1, 2, 3, 0}), "row 2: its value 1 is of column 3; the model has 3 features");
    EXPECT_EQ(columns_say({-1, 1, 2, 2, 0}), "row 0: its value 0 is of column -1; the model has 3 features");
    EXPECT_EQ(columns_say({0, INT32_MIN, 2, 2, 0}),
              "row 0: its value 1 is of column -2147483648; the model has 3 features");
    EXPECT_EQ(said(schedule, [](CsrRows& rows) { rows.value_count = 4; }),
              "row 2: its values end at 5, there are 4");
    for (const auto& drop : std::vector<std::function<void(CsrRows&)>>{
             [](CsrRows& rows) { rows.offsets = nullptr; }, [](CsrRows& rows) { rows.columns = nullptr; },
             [](CsrRows& rows) { rows.values = nullptr; }})
      EXPECT_EQ(said(schedule, drop), "a pointer of the rows, or the output, is null");
  }
}

TEST(CsrRows, TakesNoRowsAndNoValues) {
  const auto predictor = host_backend(compiled(small_forest(), "encode(u8)"));
  const auto context = (*predictor)->make_context();
  EXPECT_TRUE((*predictor)->predict(*context, CsrRows{}, OutputKind::Raw, nullptr).ok());
  const std::vector<std::int64_t> offsets(4);
  const std::vector<float> missing(9, kNan);
  EXPECT_EQ(answers(**predictor, CsrRows{3, offsets.data()}),
            answers(**predictor, RowBlock{missing.data(), 3, 3}));
}

}  // namespace
}  // namespace forestvm::test::test_csr_rows
