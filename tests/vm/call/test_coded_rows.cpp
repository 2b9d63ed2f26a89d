// Encoded rows get the predictions of the original rows, bit for bit, from every program with the same
// encoder. Any bytes are safe; codes for another encoder are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <forestvm/named_schedules.hpp>

#include "support/small_models.hpp"
#include "support/targets_here.hpp"
#include "vm/float_settings.hpp"
#include "vm/guarded_memory.hpp"
#include "vm/program/format.hpp"
#include "vm/small_program.hpp"
#include "vm/sparse_rows.hpp"

namespace forestvm::test::test_coded_rows {
namespace {

/// Owns the codes to which CodedRows points.
struct Coded {
  std::vector<std::uint8_t> bytes;
  CodedRows rows;
};

Coded encoded(const Predictor& predictor, Context& context, const AnyRows& rows) {
  const std::size_t columns = predictor.program().columns().size();
  Coded coded;
  coded.bytes.assign(coded_bytes(row_count(rows), columns), std::uint8_t{0xee});
  const auto made = predictor.encode(context, rows, coded.bytes);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().text());
  if (made.ok()) coded.rows = *made;
  return coded;
}

Coded encoded(const Predictor& predictor, const AnyRows& rows) {
  return encoded(predictor, *predictor.make_context(), rows);
}

/// Compares all kinds of output, for calls of many lengths, of rows that were dense, wide and sparse.
void expect_as_dense(const Program& program, const BackendOptions& options = {}) {
  const std::size_t features = program.meta().num_features;
  const SparseRows rows = sparse_rows(200, features, 60);
  const std::vector<double> wide(rows.dense.begin(), rows.dense.end());
  const auto predictor = host_backend(program, options);
  ASSERT_TRUE(predictor.ok());
  const auto context = (*predictor)->make_context(), other = (*predictor)->make_context();
  for (const std::size_t count : {1u, 2u, 3u, 4u, 17u, 63u, 64u, 65u, 128u, 200u}) {
    SCOPED_TRACE(count);
    const Answers expected = answers(**predictor, *other, rows.block(0, count));
    const Coded coded = encoded(**predictor, *context, rows.block(0, count));
    ASSERT_EQ(answers(**predictor, *context, coded.rows), expected);
    ASSERT_EQ(encoded(**predictor, *context, rows.csr(0, count)).bytes, coded.bytes);
    if (program.meta().score_type == ScalarType::Float64) continue;
    const RowBlock block{wide.data(), count, features, RowType::Float64};
    ASSERT_EQ(encoded(**predictor, *context, block).bytes, coded.bytes);
  }
  const Coded coded = encoded(**predictor, *context, rows.block());
  for (const std::size_t first : {64u, 128u}) {
    CodedRows rest = coded.rows;
    rest.codes += code_offset(first, rest.columns);
    rest.byte_count -= code_offset(first, rest.columns);
    rest.count -= first;
    EXPECT_EQ(answers(**predictor, *context, rest),
              answers(**predictor, *other, rows.block(first, rows.count() - first)));
  }
}

const std::string kEachGroup = "tile(tree, t0, t1, 2); reorder(t0, batch, t1); specialize(t0); ";

/// Schedules in each of which some plan has walks that read only codes.
const std::vector<std::string> kSchedules = {
    "encode(u8)",
    "encode(u8); layout(tree, sparse4)",
    "encode(u8); layout(tree, array)",
    "tile(tree, t0, t1, 4); layout(tree, array4); interleave(t1); unrollWalk(t1)",
    "tile(tree, t0, t1, 4); layout(tree, sparse); interleave(t1); encode(u8)",
    "tile(batch, b0, b1, 24); reorder(b0, tree, b1); parallel(b0); encode(u8)",
    "tile(tree, t0, t1, 3); reorder(t0, batch, t1); parallel(t0); encode(u8)",
    "plan(3); layout(tree, array); plan(BATCH); encode(u8)",
    "plan(3); encode(u8); plan(BATCH); layout(tree, array)",
    "plan(3); layout(tree, array); plan(64); encode(u8); plan(BATCH); layout(tree, sparse)",
    "plan(2); split(tree, ta, tb, 4); encode(u8); layout(ta, reorg); plan(BATCH); encode(u8)",
    "plan(3); " + kEachGroup + "layout(tree, sparse); plan(BATCH); " + kEachGroup + "encode(u8)",
    "tile(batch, b0, b1, 8); cache(b0, 1); encode(u8)"};

TEST(CodedRows, AsDenseUnderAnySchedule) {
  const Model model = small_forest({.trees = 9, .features = 8});
  for (const std::string& schedule : kSchedules)
    for (const unsigned threads : {1u, 2u, 3u}) {
      SCOPED_TRACE(schedule);
      expect_as_dense(compiled(model, schedule), {.threads = threads});
    }
}

TEST(CodedRows, AsDenseOnEveryTarget) {
  const Model model = small_forest({.trees = 40, .features = 30, .outputs = 3, .depth = 5});
  for (const std::string& target : support::targets_here())
    for (const std::string& schedule : kSchedules) {
      SCOPED_TRACE(target + ": " + schedule);
      expect_as_dense(compiled(model, schedule), {.target = target});
    }
}

TEST(CodedRows, AsDenseInAutomaticPrograms) {
  const Model model = small_forest({.trees = 60, .features = 200, .outputs = 3, .depth = 6});
  const auto program = compile(model, automatic_schedule(model), {});
  ASSERT_TRUE(program.ok());
  expect_as_dense(program->program);
}

/// The model is like LightGBM's: scores are float64, and zeros are missing.
TEST(CodedRows, AsDenseWhereScoresAreFloat64) {
  Model model = support::small_model("float64");
  for (Tree& tree : model.trees)
    for (Node& node : tree.nodes) node.missing = Missing::Zero;
  const Program program = compiled(model, "encode(u8)");
  EXPECT_FALSE(program.zero_missing().empty());
  expect_as_dense(program);
  const auto predictor = host_backend(program);
  const auto context = (*predictor)->make_context();
  const std::vector<float> rows = small_rows(100, 4);
  const RowBlock block{rows.data(), 100, 4};
  const Coded coded = encoded(**predictor, block);
  const std::size_t width = output_width(program, OutputKind::Raw);
  std::vector<double> expected(100 * width), found(100 * width);
  ASSERT_TRUE((*predictor)->predict_wide(*context, block, OutputKind::Raw, expected.data()).ok());
  ASSERT_TRUE((*predictor)->predict_wide(*context, coded.rows, OutputKind::Raw, found.data()).ok());
  EXPECT_EQ(found, expected);
}

/// Large sums per row limit the rows of a pass; each pass begins at a block of codes.
TEST(CodedRows, AsDenseWhereACallTakesSeveralPasses) {
  constexpr std::size_t kRows = 10'000;
  const Model model = small_forest({.trees = 2000, .features = 3, .outputs = 1, .depth = 1});
  const Program program = compiled(model, "parallel(tree); encode(u8)");
  ASSERT_GT(kRows * 2000 * sizeof(float), kMaxScratchBytes);
  const auto predictor = host_backend(program);
  const auto context = (*predictor)->make_context();
  const std::vector<float> rows = small_rows(kRows, 3);
  const RowBlock block{rows.data(), kRows, 3};
  std::vector<float> expected(kRows), found(kRows);
  const Coded coded = encoded(**predictor, block);
  ASSERT_TRUE((*predictor)->predict(*context, coded.rows, OutputKind::Raw, found.data()).ok());
  ASSERT_TRUE((*predictor)->predict(*context, block, OutputKind::Raw, expected.data()).ok());
  EXPECT_TRUE(found == expected);
}

TEST(CodedRows, OfTreesWithoutTestsHaveNoColumns) {
  const Model model = support::model_of({support::leaf(0.5), support::leaf(0.25)}, 1);
  const Program program = compiled(model, "encode(u8)");
  EXPECT_TRUE(program.columns().empty());
  expect_as_dense(program);
}

TEST(CodedRows, SuitEveryProgramWithTheEncoder) {
  const Model model = small_forest({.trees = 9, .features = 8});
  const std::vector<float> rows = small_rows(100, 8);
  const RowBlock block{rows.data(), 100, 8};
  const auto first = host_backend(compiled(model, kSchedules[0]));
  const Coded coded = encoded(**first, block);
  for (const std::string& schedule : kSchedules) {
    const Program program = compiled(model, schedule);
    EXPECT_EQ(encoder_id(program), encoder_id((*first)->program())) << schedule;
    const auto predictor = host_backend(program, {.threads = 2});
    EXPECT_EQ(answers(**predictor, coded.rows), answers(**predictor, block)) << schedule;
  }
}

TEST(CodedRows, EncodersDifferWhereCodesMay) {
  Model model = small_forest();
  const auto id = [&] { return encoder_id(compiled(model, "encode(u8)")); };
  const std::uint64_t before = id();
  EXPECT_EQ(id(), before);
  for (Node& node : model.trees[0].nodes)
    if (node.kind == NodeKind::Leaf) node.value = 0.125;
  EXPECT_EQ(id(), before);  // leaves do not belong to the encoder
  Model changed = model;
  changed.trees[0].nodes[0].threshold = 0.3125;
  std::swap(model, changed);
  EXPECT_NE(id(), before);
  std::swap(model, changed);
  model.trees[0].nodes[0].missing_left = !model.trees[0].nodes[0].missing_left;
  for (Tree& tree : model.trees)
    for (Node& node : tree.nodes) node.missing_left = true;
  EXPECT_NE(id(), before);
  EXPECT_NE(encoder_id(compiled(small_forest(), "")), before);
}

/// The encoder is defined by these sections, every byte of them, and nothing else.
TEST(CodedRows, EncodersAreSectionsOfThePrograms) {
  const std::set<Section> of_encoder{Section::EncodedFeatures, Section::Columns,       Section::Ranks,
                                     Section::CategoryColumns, Section::CategoryWords, Section::ZeroMissing,
                                     Section::WideFeatures,    Section::WideBounds};
  Model model = small_forest({.trees = 9, .features = 40});
  model.row_type = model.score_type = ScalarType::Float64;
  for (std::size_t t = 0; t < model.trees.size(); ++t) {
    if (t % 2 == 0) make_categorical(model.trees[t]);
    for (Node& node : model.trees[t].nodes)
      if (node.feature == 1) node.missing = Missing::Zero;
    for (Node& node : model.trees[t].nodes)
      if (node.kind == NodeKind::Less && node.feature > 20) node.threshold += 1e-9;
  }
  const Program program = compiled(model, "encode(u8)");
  const std::vector<std::byte> good = image_of(program);
  for (std::size_t i = 0; i < kCommonSections; ++i) {
    const auto section = static_cast<Section>(i);
    bytecode::SectionEntry entry;
    std::memcpy(&entry, good.data() + sizeof(bytecode::FileHeader) + i * sizeof entry, sizeof entry);
    EXPECT_TRUE(entry.size != 0 || !of_encoder.contains(section)) << i;
    for (std::size_t at = entry.offset; at < entry.offset + entry.size; ++at) {
      std::vector<std::byte> image = good;
      image[at] ^= std::byte{1};
      const auto changed = Program::from_bytes(image, Verification::Trust);
      if (!changed.ok()) continue;
      EXPECT_EQ(encoder_id(*changed) != encoder_id(program), of_encoder.contains(section))
          << "section " << i << ", byte " << at;
    }
  }
}

TEST(CodedRows, AreTheSameHoweverTheyAreMade) {
  const Program program = compiled(small_forest({.trees = 40, .features = 30, .depth = 5}), "encode(u8)");
  const std::vector<float> rows = small_rows(3001, 30);
  const RowBlock block{rows.data(), 3001, 30};
  const Coded expected = encoded(**host_backend(program), block);
  const std::size_t columns = program.columns().size();
  for (std::size_t row = 3001; row % kCodeRows != 0; ++row)
    for (std::size_t c = 0; c < columns; ++c)
      ASSERT_EQ(expected.bytes[code_offset(row, columns) + c * kCodeRows], 0);
  for (const std::string& target : support::targets_here())
    for (const unsigned threads : {1u, 2u, 4u})
      EXPECT_TRUE(encoded(**host_backend(program, {threads, target}), block).bytes == expected.bytes)
          << target << ", " << threads << " threads";
}

/// Codes that no row can have lead to some leaf of each tree. No walk reads memory behind the codes.
TEST(CodedRows, AnyBytesAreSafe) {
  std::mt19937 random(3);
  const Model ragged = small_forest({.trees = 40, .features = 9, .outputs = 3, .depth = 6});
  for (const std::string& schedule : kSchedules) {
    SCOPED_TRACE(schedule);
    const Program program = compiled(ragged, schedule);
    const std::size_t columns = program.columns().size();
    std::vector<std::vector<std::int32_t>> leaves;
    for (const Tree& tree : ragged.trees) {
      leaves.emplace_back();
      for (std::size_t n = 0; n < tree.nodes.size(); ++n)
        if (tree.nodes[n].kind == NodeKind::Leaf) leaves.back().push_back(static_cast<std::int32_t>(n));
    }
    for (const std::string& target : support::targets_here()) {
      const auto predictor = host_backend(program, {.target = target});
      const auto context = (*predictor)->make_context();
      for (const std::size_t count : {1u, 5u, 33u, 64u, 130u}) {
        const std::size_t bytes = coded_bytes(count, columns);
        const GuardedMemory memory(bytes);
        auto* const codes = reinterpret_cast<std::uint8_t*>(memory.at(bytes, GuardedMemory::Against::Back));
        const CodedRows rows{codes, count, columns, bytes, encoder_id(program)};
        for (const int kind : {0, 1, 2}) {
          for (std::size_t i = 0; i < rows.byte_count; ++i)
            codes[i] = static_cast<std::uint8_t>(kind == 0 ? 255u : random() % (kind == 1 ? 256 : 9));
          const Answers found = answers(**predictor, *context, rows);
          for (std::size_t i = 0; i < found.leaves.size(); ++i) {
            const auto& known = leaves[i % leaves.size()];
            ASSERT_TRUE(std::find(known.begin(), known.end(), found.leaves[i]) != known.end()) << i;
          }
        }
      }
    }
  }
}

/// Returns the error of predicting ten encoded rows after `damage`.
std::string said(const std::function<void(CodedRows&)>& damage, ErrorCode code = ErrorCode::Usage) {
  const auto predictor = host_backend(compiled(small_forest(), "encode(u8)"));
  const std::vector<float> values = small_rows(10, 3);
  const Coded coded = encoded(**predictor, RowBlock{values.data(), 10, 3});
  CodedRows rows = coded.rows;
  damage(rows);
  std::vector<float> out(30);
  const auto done = (*predictor)->predict(*(*predictor)->make_context(), rows, OutputKind::Raw, out.data());
  if (done.ok()) return "fine";
  EXPECT_EQ(done.error().code, code);
  return done.error().text();
}

TEST(CodedRows, RefusesWhatMakesNoSense) {
  const Program program = compiled(small_forest(), "encode(u8)");
  const std::size_t columns = program.columns().size();
  const std::string rows_text = "10 rows of " + std::to_string(columns) + " columns";
  const std::size_t bytes = coded_bytes(10, columns);
  EXPECT_EQ(said([](CodedRows&) {}), "fine");
  EXPECT_EQ(said([](CodedRows& rows) { rows.encoder = 0xabc; }, ErrorCode::Refused)
                .find("the rows are encoded for another program: its encoder is abc, this one's "),
            0u);
  EXPECT_EQ(
      said([](CodedRows& rows) { ++rows.columns; }),
      "10 rows of " + std::to_string(columns + 1) + " columns for a program of " + std::to_string(columns));
  EXPECT_EQ(said([](CodedRows& rows) { --rows.byte_count; }),
            rows_text + " take " + std::to_string(bytes) + " bytes, given are " + std::to_string(bytes - 1));
  EXPECT_EQ(said([](CodedRows& rows) { rows.codes = nullptr; }),
            "a pointer of the rows, or the output, is null");
  EXPECT_NE(said([](CodedRows& rows) { rows.count = SIZE_MAX; }).find("are more than memory holds"),
            std::string::npos);
  EXPECT_EQ(said([](CodedRows& rows) { rows.count = 0; }), "fine");
}

TEST(CodedRows, SaysWhereTheyCannotBeTaken) {
  const std::vector<float> values = small_rows(10, 3);
  const RowBlock block{values.data(), 10, 3};
  const Coded coded = encoded(**host_backend(compiled(small_forest(), "encode(u8)")), block);
  std::vector<std::uint8_t> room(1 << 16);
  std::vector<float> out(30);
  for (const auto& [schedule, why] : {std::pair("layout(tree, array)", "the program has no encoder"),
                                      {"split(tree, ta, tb, 4); encode(u8); layout(ta, reorg)",
                                       "in every plan of the program some walk reads the rows' values"}}) {
    const auto predictor = host_backend(compiled(small_forest(), schedule));
    const auto context = (*predictor)->make_context();
    const auto predicted = (*predictor)->predict(*context, coded.rows, OutputKind::Raw, out.data());
    const auto made = (*predictor)->encode(*context, block, room);
    for (const Error& error : {predicted.error(), made.error()}) {
      EXPECT_EQ(error.code, ErrorCode::Refused);
      EXPECT_NE(error.text().find(why), std::string::npos) << error.text();
    }
  }
}

TEST(CodedRows, EncodeRefusesWhatMakesNoSense) {
  const auto predictor = host_backend(compiled(small_forest(), "encode(u8)"));
  const auto context = (*predictor)->make_context();
  const std::vector<float> values = small_rows(10, 3);
  const RowBlock block{values.data(), 10, 3};
  Coded coded = encoded(**predictor, block);
  const auto expect = [&](const AnyRows& rows, std::span<std::uint8_t> out, const std::string& part) {
    const auto made = (*predictor)->encode(*context, rows, out);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code, ErrorCode::Usage);
    EXPECT_NE(made.error().text().find(part), std::string::npos) << made.error().text();
  };
  const std::span<std::uint8_t> out(coded.bytes);
  expect(coded.rows, out, "the rows are encoded already");
  expect(block, out.first(out.size() - 1), "bytes of codes; 10 rows of ");
  expect(block, {}, "room for 0 bytes of codes");
  expect(RowBlock{values.data(), 10, 2}, out, "rows of 2 values for a model of 3 features");
  expect(RowBlock{nullptr, 10, 3}, out, "or the output, is null");
  expect(RowBlock{values.data(), SIZE_MAX, 3}, out, "room for");
  const std::vector<std::int64_t> offsets(11, -1);
  expect(CsrRows{10, offsets.data()}, out, "row 0: its first value is number -1");
}

TEST(CodedRows, NoRowsAreDenseOnes) {
  const auto predictor = host_backend(compiled(small_forest(), "encode(u8)"));
  const auto context = (*predictor)->make_context();
  EXPECT_TRUE((*predictor)->predict(*context, {}, OutputKind::Raw, nullptr).ok());
  EXPECT_TRUE((*predictor)->predict(*context, CodedRows{}, OutputKind::Raw, nullptr).ok());
  const auto made = (*predictor)->encode(*context, {}, {});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->count, 0u);
}

TEST(CodedRows, SizesThatOverflowAreMoreThanMemoryHolds) {
  EXPECT_EQ(coded_bytes(0, 5), 0u);
  EXPECT_EQ(coded_bytes(1, 5), 5 * kCodeRows + kCodeSlack);
  EXPECT_EQ(coded_bytes(65, 5), 2 * 5 * kCodeRows + kCodeSlack);
  EXPECT_EQ(coded_bytes(SIZE_MAX, 0), kCodeSlack);
  EXPECT_EQ(coded_bytes(SIZE_MAX, 1), SIZE_MAX);
  EXPECT_EQ(coded_bytes(SIZE_MAX / 2, 2), SIZE_MAX);
  EXPECT_EQ(coded_bytes(1, SIZE_MAX), SIZE_MAX);
}

}  // namespace
}  // namespace forestvm::test::test_coded_rows
