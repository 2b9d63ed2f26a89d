// Leaves that are linear functions of the row (LightGBM's linear_tree): programs against the reference predictor, bit
// for bit, for every form of rows; what refuses them; what the verifier refuses.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/export.hpp>
#include <forestvm/reference.hpp>

#include "breach.hpp"
#include "conformance/dice.hpp"
#include "small_program.hpp"
#include "sparse_rows.hpp"
#include "support/small_models.hpp"

namespace forestvm::test {
namespace {

Model linear_forest(std::uint32_t seed = 1) {
  Model model = small_forest({.trees = 12, .features = 5}, seed);
  support::make_linear(model);
  return model;
}

/// Returns rows of values that float32 rounds, tiny ones on both sides of the limit, infinities and NaN.
std::vector<double> wide_rows(const Model& model, std::size_t count) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> special{0.0,    -0.0,  kTiny,     -kTiny,     std::nextafter(kTiny, 1),
                                    1e-300, 1e300, kInfinity, -kInfinity, 16777217};
  Dice dice(7);
  std::vector<double> rows(count * model.num_features);
  for (double& x : rows) {
    x = dice.percent(15) ? dice.pick(special) : dice.real() * 4 - 2;
    if (dice.percent(10)) x = std::numeric_limits<double>::quiet_NaN();
  }
  return rows;
}

std::vector<std::uint64_t> bits_of(const std::vector<double>& numbers) {
  std::vector<std::uint64_t> bits;
  for (const double x : numbers) bits.push_back(std::isnan(x) ? UINT64_MAX : std::bit_cast<std::uint64_t>(x));
  return bits;
}

template <class Value>
std::vector<std::uint64_t> expected_bits(const Model& model, const std::vector<Value>& rows) {
  return bits_of(reference_predict(model, rows, rows.size() / model.num_features)->raw);
}

std::vector<std::uint64_t> scores(const Program& program, const AnyRows& rows, unsigned threads) {
  const auto predictor = host_backend(program, {.threads = threads});
  const auto context = (*predictor)->make_context();
  std::vector<double> raw(row_count(rows) * program.meta().num_outputs);
  const auto done = (*predictor)->predict_wide(*context, rows, OutputKind::Raw, raw.data());
  EXPECT_TRUE(done.ok()) << done.error().text();
  return bits_of(raw);
}

const char* const kSchedules[] = {
    "",
    "reorder(tree, batch)",
    "orderTrees(depth); layout(tree, reorg)",
    "tileTree(tree, 8, uniform); layout(tree, sparse)",
    "tile(batch, b0, b1, 16); reorder(b0, tree, b1); parallel(b0); encode(u8)",
    "tile(tree, t0, t1, 5); parallel(t0); layout(tree, sparse8)",
    "plan(3); layout(tree, sparse); plan(BATCH); tile(batch, b0, b1, 8); reorder(b0, tree, b1); parallel(b0)"};

TEST(LeafFunctions, GiveTheReferencesBitsForRowsOfAnyForm) {
  const Model model = linear_forest();
  const std::size_t features = model.num_features;
  const std::vector<double> wide = wide_rows(model, 100);
  std::vector<float> narrow(wide.begin(), wide.end());
  std::vector<double> columns(wide.size());
  for (std::size_t i = 0; i < wide.size(); ++i) columns[i % features * 100 + i / features] = wide[i];
  const SparseRows missing = sparse_rows(100, features, 60),
                   zero = sparse_rows(100, features, 60, Absent::Zero);
  const std::vector<double> listed(zero.values.begin(), zero.values.end());
  CsrRows wide_csr = zero.csr();
  wide_csr.values = listed.data();
  wide_csr.type = RowType::Float64;
  for (const char* schedule : kSchedules)
    for (const Contract contract : {Contract::Trainer, Contract::Reproducible}) {
      SCOPED_TRACE(schedule);
      const Program program = compiled(model, schedule, contract);
      for (const unsigned threads : {1u, 3u}) {
        EXPECT_EQ(scores(program, RowBlock{wide.data(), 100, features, RowType::Float64}, threads),
                  expected_bits(model, wide));
        EXPECT_EQ(scores(program, RowBlock{columns.data(), 100, 1, RowType::Float64, 100}, threads),
                  expected_bits(model, wide));
        EXPECT_EQ(scores(program, RowBlock{narrow.data(), 100, features}, threads),
                  expected_bits(model, narrow));
        EXPECT_EQ(scores(program, missing.csr(), threads), expected_bits(model, missing.dense));
        EXPECT_EQ(scores(program, zero.csr(), threads), expected_bits(model, zero.dense));
        EXPECT_EQ(scores(program, wide_csr, threads), expected_bits(model, zero.dense));
      }
    }
}

/// Two passes and more, the later of which must read their own rows.
TEST(LeafFunctions, ReadTheRowsOfTheirPass) {
  Model model = support::model_of({support::split(599, 0.5, support::leaf(1), support::leaf(2))});
  model.num_features = 600;
  support::make_linear(model);
  model.trees[0].linear_leaves[0] = {1, {0}, {1}};
  model.trees[0].linear_leaves[1] = {2, {0, 599}, {1, 1}};
  const std::size_t count = 4200;
  const std::vector<double> rows = wide_rows(model, count);
  EXPECT_EQ(scores(compiled(model, ""), RowBlock{rows.data(), count, 600, RowType::Float64}, 1),
            expected_bits(model, rows));
}

TEST(LeafFunctions, AreRefusedForEncodedRows) {
  const Model model = linear_forest();
  const Program program = compiled(model, "encode(u8)");
  const auto predictor = host_backend(program);
  const auto context = (*predictor)->make_context();
  const std::vector<float> rows(model.num_features);
  std::vector<std::uint8_t> codes(coded_bytes(1, program.section_Columns().size()));
  const auto encoded = (*predictor)->encode(*context, RowBlock{rows.data(), 1, rows.size()}, codes);
  ASSERT_FALSE(encoded.ok());
  EXPECT_EQ(encoded.error().code, ErrorCode::Refused);
  EXPECT_NE(encoded.error().message.find("linear leaves, which read the rows' values"), std::string::npos);
  const CodedRows coded{codes.data(), 1, program.section_Columns().size(), codes.size(), encoder_id(program)};
  float raw[3];
  const auto predicted = (*predictor)->predict(*context, coded, OutputKind::Raw, raw);
  ASSERT_FALSE(predicted.ok());
  EXPECT_EQ(predicted.error().text(), encoded.error().text());
}

TEST(LeafFunctions, HaveNoFormInC) {
  const auto exported = export_c(compiled(linear_forest(), "layout(tree, array)"), {});
  ASSERT_FALSE(exported.ok());
  EXPECT_NE(exported.error().message.find("linear functions of the row"), std::string::npos);
}

TEST(LeafFunctions, AreRefusedOnGpus) {
  const std::string schedule = "tile(batch, b0, b1, 8); gpuDimension(b0, grid.x); gpuDimension(b1, block.x)";
  const auto refused = compile(linear_forest(), parse_schedule(schedule).value(), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.error().text(),
      "line 1, column 25: gpuDimension(b0, grid.x): the model has linear leaves, whose functions only the host "
      "computes");
  Model model = small_forest({.depth = 2});
  make_wide(model);
  ProgramParts parts = parts_of(compiled(model, schedule));
  parts.leaf_functions = {{1, 1, 0, 0}};
  const auto program = encode_program(parts);
  ASSERT_TRUE(program.ok()) << program.error().text();
  const auto predictor = emulator_backend(*program);
  ASSERT_FALSE(predictor.ok());
  EXPECT_EQ(predictor.error().text(),
            "its leaves are linear functions of the row, which only the host computes");
}

TEST(LeafFunctions, AreListed) {
  const Program program = compiled(linear_forest(), "encode(u8)");
  const std::string text = program.disassemble();
  EXPECT_NE(text.find("; leaves are " + std::to_string(program.section_LeafFunctions().size()) +
                      " linear functions of the row, " + std::to_string(program.section_LeafTerms().size()) +
                      " terms in all\n"),
            std::string::npos)
      << text;
  const auto again = assemble(text, program);
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(image_of(*again), image_of(program));
}

TEST(LeafFunctions, AreVerified) {
  const ProgramParts parts = parts_of(compiled(linear_forest(), "encode(u8)"));
  ASSERT_GE(parts.leaf_terms.size(), 3u);
  ASSERT_EQ(parts.leaf_functions[1].term_count, 1u);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  expect_refusals(
      parts, {{"a term too many", [](ProgramParts& p) { p.leaf_terms.push_back({}); }, "leaf_terms section",
               "terms, but the functions have"},
              {"terms twice", [](ProgramParts& p) { p.leaf_functions[2].first_term = 0; },
               "leaf_functions section: record 2", "its terms do not follow"},
              {"terms outside", [](ProgramParts& p) { p.leaf_functions.back().term_count = UINT32_MAX; },
               "leaf_functions section: record", "its terms leave"},
              {"a feature outside", [](ProgramParts& p) { p.leaf_terms[1].feature = 5; },
               "leaf_terms section: record 1", "outside the row"},
              {"a reserved field", [](ProgramParts& p) { p.leaf_terms[2].reserved = 1; },
               "leaf_terms section: record 2", "reserved"},
              {"a coefficient", [](ProgramParts& p) { p.leaf_terms[0].coefficient = kNan; },
               "leaf_terms section: record 0", "not finite"},
              {"a constant", [](ProgramParts& p) { p.leaf_functions[0].constant = kNan; },
               "leaf_functions section: record 0", "not finite"},
              {"a value", [](ProgramParts& p) { p.leaf_functions[0].value = -1 / 0.0; },
               "leaf_functions section: record 0", "not finite"},
              {"vectors, too", [](ProgramParts& p) { p.leaf_vectors.resize(24); }, "leaf_functions section",
               "have vectors, too"},
              {"float32 rows",
               [](ProgramParts& p) {
                 p.meta.row_type = ScalarType::Float32;
                 p.wide_features.clear();
                 p.wide_bounds.clear();
               },
               "leaf_functions section", "does not compare in float64"}});
}

/// A number that is none of a function's stands for the first one: walks of a damaged program read nothing outside.
TEST(LeafFunctions, TakeAnyNumber) {
  Model model = support::model_of({support::split(0, 0.5, support::leaf(1), support::leaf(2))});
  support::make_linear(model);
  model.trees[0].linear_leaves = {{1, {}, {}}, {2, {1}, {1}}};
  ProgramParts parts = parts_of(compiled(model, "layout(tree, array)"));
  for (const double number : {-1.0, 2.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    for (double& leaf : parts.wide_leaves) leaf = number;
    const auto program = encode_program(parts);
    ASSERT_TRUE(program.ok()) << program.error().text();
    const std::vector<double> row(4, 7);
    EXPECT_EQ(scores(*program, RowBlock{row.data(), 1, 4, RowType::Float64}, 1), bits_of({1.5}));
  }
}

}  // namespace
}  // namespace forestvm::test
