// Leaves that are linear functions of the row (LightGBM's linear_tree): programs against the reference predictor, bit
// for bit, for every form of rows, on the host and on emulated GPUs; what the verifier refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/emulator.hpp>
#include <forestvm/internal/program_tools.hpp>
#include <forestvm/internal/reference.hpp>

#include "conformance/dice.hpp"
#include "support/small_models.hpp"
#include "vm/breach.hpp"
#include "vm/small_program.hpp"
#include "vm/sparse_rows.hpp"

namespace forestvm::test::test_leaf_functions {
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

/// Functions have zero to fourteen terms, also with coefficients of zero, sums of zero of either sign, and infinities
/// that cancel each other. Only a value that is NaN makes a function give the leaf's value.
TEST(LeafFunctions, AddTermsOfAnyNumber) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> coefficients{1, -1, 0.5, -0.25, 0, -0.0, 1e300, 0.1};
  const std::vector<double> tiny{0, -0.0, 1}, large{kInfinity, -kInfinity, 1e300};
  Dice dice(3);
  std::vector<Tree> trees(60);
  for (std::size_t t = 0; t < trees.size(); ++t) {
    trees[t] = support::split(0, 0.5, support::leaf(1), support::leaf(2));
    for (Node& node : trees[t].nodes) {
      if (node.kind != NodeKind::Leaf) continue;
      node.payload = static_cast<std::uint32_t>(trees[t].linear_leaves.size());
      LinearLeaf leaf{dice.percent(50) ? -0.0 : 0.5, {}, {}};
      const std::size_t terms = t < 54 ? t % 9 : 10 + t % 5;
      for (std::size_t k = 0; k < terms; ++k) {
        leaf.features.push_back(static_cast<std::uint32_t>(dice.below(16)));
        leaf.coefficients.push_back(dice.pick(coefficients));
      }
      trees[t].linear_leaves.push_back(leaf);
    }
  }
  const std::size_t count = 300;
  std::vector<double> rows(count * 16);
  for (double& x : rows) {
    const std::size_t row = static_cast<std::size_t>(&x - rows.data()) / 16;
    x = row % 4 == 0 ? dice.pick(tiny) : dice.real() * 4 - 2;
    if (row % 4 == 1 && dice.percent(5)) x = dice.pick(large);
    if (row % 4 == 2 && dice.percent(5)) x = kNan;
  }
  // Each tree has an output of its own, and bases are the zero that changes no sum: so no bit of a function is hidden.
  for (std::uint32_t t = 0; t < trees.size(); ++t) trees[t].output = t;
  Model model = support::model_of(trees, static_cast<std::uint32_t>(trees.size()));
  model.base.assign(trees.size(), -0.0);
  model.num_features = 16;
  model.row_type = model.score_type = ScalarType::Float64;
  model.tiny_is_zero = true;
  EXPECT_EQ(scores(compiled(model, ""), RowBlock{rows.data(), count, 16, RowType::Float64}, 1),
            expected_bits(model, rows));
}

/// In a call of several passes, each pass must read its own rows.
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

/// Encoded rows carry the values that functions read: they give the bits of the rows, in one call and in parts that
/// begin at a block, wherever the bytes lie. Equal rows give equal bytes.
TEST(LeafFunctions, ReadEncodedRows) {
  const Model model = linear_forest();
  const std::size_t count = 1100, features = model.num_features;
  const std::vector<double> wide = wide_rows(model, count);
  const RowBlock rows{wide.data(), count, features, RowType::Float64};
  const std::vector<std::uint64_t> wanted = expected_bits(model, wide);
  for (const char* schedule : {"encode(u8)", "encode(u8); layout(tree, tables)",
                               "tile(batch, b0, b1, 16); reorder(b0, tree, b1); parallel(b0); encode(u8)"}) {
    SCOPED_TRACE(schedule);
    const Program program = compiled(model, schedule);
    const auto predictor = host_backend(program, {.threads = 2});
    const auto context = (*predictor)->make_context();
    const std::size_t columns = (*predictor)->coded_columns();
    EXPECT_EQ(columns, program.columns().size() + 8 * features);
    const std::size_t bytes = coded_bytes(count, columns);
    std::vector<std::uint8_t> memory(bytes + 1, 0xee), again(bytes, 0x11);
    const auto coded = (*predictor)->encode(*context, rows, std::span(memory).subspan(1));
    ASSERT_TRUE(coded.ok()) << coded.error().text();
    ASSERT_TRUE((*predictor)->encode(*context, rows, again).ok());
    EXPECT_TRUE(std::equal(again.begin(), again.end(), memory.begin() + 1));
    EXPECT_EQ(scores(program, *coded, 1), wanted);
    EXPECT_EQ(scores(program, *coded, 3), wanted);
    CodedRows part = *coded;
    part.codes += code_offset(128, columns);
    part.count = 129;
    part.byte_count -= code_offset(128, columns);
    const std::size_t outputs = model.num_outputs;
    const auto begin = wanted.begin() + static_cast<std::ptrdiff_t>(128 * outputs);
    EXPECT_EQ(scores(program, part, 1),
              std::vector<std::uint64_t>(begin, begin + static_cast<std::ptrdiff_t>(129 * outputs)));
  }
}

/// A program whose functions read other features would find other values, so it has another encoder.
TEST(LeafFunctions, TellApartEncodedRowsOfOtherFeatures) {
  Model model = support::model_of({support::split(0, 0.5, support::leaf(1), support::leaf(2))});
  support::make_linear(model);
  model.trees[0].linear_leaves = {{1, {}, {}}, {2, {1}, {1}}};
  const std::uint64_t id = encoder_id(compiled(model, "encode(u8)"));
  model.trees[0].linear_leaves[0].constant = 7;
  EXPECT_EQ(encoder_id(compiled(model, "encode(u8)")), id);
  model.trees[0].linear_leaves[1].features = {2};
  EXPECT_NE(encoder_id(compiled(model, "encode(u8)")), id);
}

/// Schedules with every layout that GPUs walk; with the trees of a row in one thread, in several threads and in several
/// blocks; with rows and trees in shared memory; and with codes.
const char* const kGpuSchedules[] = {
    "tile(batch, b0, b1, 8); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); layout(tree, array)",
    "tile(batch, b0, b1, 8); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); layout(tree, sparse); cache(b0)",
    "gpuDimension(batch, grid.x); gpuDimension(tree, block.x); layout(tree, reorg)",
    "tile(batch, b0, b1, 8); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); layout(tree, sparse8)",
    "tile(batch, b0, b1, 8); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); layout(tree, sparse16)",
    "tile(batch, b0, b1, 8); tile(tree, t0, t1, 5); reorder(b0, t0, b1, t1); gpuDimension(b0, grid.x); "
    "gpuDimension(t0, grid.y); gpuDimension(b1, block.x); layout(tree, array); cache(t0)",
    "encode(u8); tile(batch, b0, b1, 8); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); layout(tree, array4)",
    "encode(u8); tile(batch, b0, b1, 8); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); layout(tree, array); "
    "cache(b0)",
    "encode(u8); tile(batch, b0, b1, 8); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); layout(tree, sparse)"};

/// Emulated GPUs get rows from the host in any form, rows that the host has encoded, and rows in their own memory.
TEST(LeafFunctions, GiveTheReferencesBitsOnGpus) {
  const Model model = linear_forest();
  const std::size_t count = 100, features = model.num_features;
  const std::vector<double> wide = wide_rows(model, count);
  const std::vector<float> narrow(wide.begin(), wide.end());
  const SparseRows zero = sparse_rows(count, features, 60, Absent::Zero);
  const Program host = compiled(model, "encode(u8)");
  const auto encoder = host_backend(host);
  std::vector<std::uint8_t> codes(coded_bytes(count, (*encoder)->coded_columns()));
  const auto coded = (*encoder)->encode(*(*encoder)->make_context(),
                                        RowBlock{wide.data(), count, features, RowType::Float64}, codes);
  ASSERT_TRUE(coded.ok()) << coded.error().text();
  for (const std::string schedule : kGpuSchedules) {
    SCOPED_TRACE(schedule);
    const Program program = compiled(model, schedule);
    const auto predictor = emulator_backend(program);
    ASSERT_TRUE(predictor.ok()) << predictor.error().text();
    const auto context = (*predictor)->make_context();
    const auto scores_of = [&](const AnyRows& rows) {
      std::vector<double> raw(row_count(rows) * model.num_outputs);
      const auto done = (*predictor)->predict_wide(*context, rows, OutputKind::Raw, raw.data());
      EXPECT_TRUE(done.ok()) << done.error().text();
      return bits_of(raw);
    };
    for (int call = 0; call < 3; ++call)  // the third one replays a graph
      EXPECT_EQ(scores_of(RowBlock{wide.data(), count, features, RowType::Float64}),
                expected_bits(model, wide));
    EXPECT_EQ(scores_of(RowBlock{narrow.data(), count, features}), expected_bits(model, narrow));
    EXPECT_EQ(scores_of(zero.csr()), expected_bits(model, zero.dense));
    EXPECT_EQ(scores_of(DeviceRows{narrow.data(), count, features}), expected_bits(model, narrow));
    if (!schedule.starts_with("encode(u8)")) continue;
    EXPECT_EQ(scores_of(*coded), expected_bits(model, wide));
  }
}

TEST(LeafFunctions, AreListed) {
  const Program program = compiled(linear_forest(), "encode(u8)");
  const std::string text = program.disassemble();
  EXPECT_NE(text.find("; leaves are " + std::to_string(program.leaf_functions().size()) +
                      " linear functions of the row, " + std::to_string(program.leaf_terms().size()) +
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

/// A leaf whose function number is too large has the first function, so that walks of a damaged program read nothing
/// outside the tables.
TEST(LeafFunctions, TakeAnyNumber) {
  Model model = support::model_of({support::split(0, 0.5, support::leaf(1), support::leaf(2))});
  support::make_linear(model);
  model.trees[0].linear_leaves = {{1, {}, {}}, {2, {1}, {1}}};
  ProgramParts parts = parts_of(compiled(model, "layout(tree, array)"));
  for (const double number : {-1.0, 2.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    for (double& leaf : parts.wide_leaves) leaf = number;
    const auto program = build_program(parts);
    ASSERT_TRUE(program.ok()) << program.error().text();
    const std::vector<double> row(4, 7);
    EXPECT_EQ(scores(*program, RowBlock{row.data(), 1, 4, RowType::Float64}, 1), bits_of({1.5}));
  }
}

}  // namespace
}  // namespace forestvm::test::test_leaf_functions
