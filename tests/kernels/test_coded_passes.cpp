// Encoded rows on a GPU, which is the emulator: predictions equal those of the rows before encoding, in slabs
// and plans of any size; the GPU refuses what the host refuses.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/core/encoder.hpp>

#include "kernels/backend/predictor.hpp"
#include "kernels/emulator/runtime.hpp"
#include "kernels/mapped_nests.hpp"
#include "vm/small_program.hpp"

namespace forestvm::kernels::test_coded_passes {
namespace {

constexpr std::size_t kRows = 500;

const std::string kMapped = trees_in_grid(24) + "; ";

std::string text_of(const Result<void>& result) { return result.ok() ? "done" : result.error().text(); }

std::unique_ptr<Predictor> emulated(const Program& program, const PassBounds& bounds = {},
                                    const EmulatorSettings& settings = {}) {
  auto predictor = make_predictor(program, make_emulator_runtime(settings), "it", bounds);
  EXPECT_TRUE(predictor.ok()) << (predictor.ok() ? "" : predictor.error().text());
  return std::move(predictor).value();
}

class CodedPasses : public testing::Test {
 protected:
  CodedPasses() { encode(); }

  Program program(const std::string& schedule) const {
    return test::compiled(model_, schedule, Contract::Reproducible);
  }

  /// Encodes the rows on the host with a program that has the same encoder.
  void encode() {
    host_ = host_backend(program("encode(u8)")).value();
    const std::size_t columns = host_->program().columns().size();
    codes_.assign(coded_bytes(kRows, columns), std::uint8_t{0});
    const auto coded = host_->encode(*host_->make_context(), block(kRows), codes_);
    ASSERT_TRUE(coded.ok()) << coded.error().text();
    coded_ = *coded;
  }

  RowBlock block(std::size_t count) const { return {rows_.data(), count, 3}; }
  CodedRows coded(std::size_t count) const {
    CodedRows rows = coded_;
    rows.count = count;
    return rows;
  }

  void expect_as_the_host(const Predictor& gpu, const std::vector<std::size_t>& counts) const {
    const auto context = gpu.make_context();
    for (const std::size_t count : counts)
      for (unsigned again = 0; again < 3; ++again) {
        ASSERT_EQ(test::answers(gpu, *context, coded(count)), test::answers(*host_, block(count))) << count;
        if (again == 1) {
          ASSERT_EQ(test::answers(gpu, *context, block(count)), test::answers(*host_, block(count)));
        }
      }
  }

  Model model_ = test::small_forest();
  const std::vector<float> rows_ = test::small_rows(kRows, 3);
  std::unique_ptr<Predictor> host_;
  std::vector<std::uint8_t> codes_;
  CodedRows coded_;
};

TEST_F(CodedPasses, AreTheRowsTheyWereMadeOf) {
  for (const char* const layout : {"layout(tree, sparse4)", "layout(tree, sparse)", "layout(tree, tables)"})
    expect_as_the_host(*emulated(program(kMapped + "encode(u8); " + layout)), {1, 63, 64, 65, 70, 200});
}

TEST_F(CodedPasses, OfCategoricalSplits) {
  for (Tree& tree : model_.trees) test::make_categorical(tree);
  encode();
  expect_as_the_host(*emulated(program(kMapped + "layout(tree, sparse)")), {1, 65, 200});
}

/// In shared memory codes of rows 32 apart share a word, in blocks of up to 128 rows and in larger ones. Blocks make
/// the codes themselves, or copy those that an earlier launch has made.
TEST_F(CodedPasses, CachedRowsOfAnyNumber) {
  const std::string
      made = "reorder(b0, b1, tree); layout(tree, ",
      copied = "tile(tree, t0, t1, 2); reorder(b0, t0, b1, t1); gpuDimension(t0, grid.z); layout(t0, ";
  for (const unsigned rows : {31u, 32u, 33u, 64u, 100u, 128u, 130u, 300u})
    for (const std::string& loops :
         {made + "array)", made + "sparse)", copied + "array)", copied + "sparse)"})
      expect_as_the_host(*emulated(program("tile(batch, b0, b1, " + std::to_string(rows) + "); " + loops +
                                           "; gpuDimension(b0, grid.x); gpuDimension(b1, block.x); "
                                           "cache(b0); encode(u8)")),
                         {1, 65, kRows});
}

/// Rows that are cached inside cached rows lie in shared memory already, and so do the codes that are made there.
TEST_F(CodedPasses, RowsCachedInsideCachedRows) {
  const auto gpu = emulated(program(
      "tile(batch, b0, b1, 4); tile(b1, b2, b3, 2); gpuDimension(b0, grid.x); cache(b0); cache(b2); encode(u8)"));
  const auto context = gpu->make_context();
  EXPECT_EQ(test::answers(*gpu, *context, block(kRows)), test::answers(*host_, block(kRows)));
}

TEST_F(CodedPasses, SlabsOfWholeBlocks) {
  const Program mapped = program(kMapped + "encode(u8)");
  const std::size_t row_bytes = coded_.columns + 3 * sizeof(float);
  for (const std::size_t slab_rows : {1u, 65u, 130u, 499u, 1000u})
    expect_as_the_host(*emulated(mapped, {.slab_bytes = slab_rows * row_bytes}), {64, 129, kRows});
  expect_as_the_host(*emulated(mapped, {.pass_bytes = 1}), {kRows});
}

/// Plans for few rows read values, so encoded rows take the plan for more rows.
TEST_F(CodedPasses, GoThroughAPlanThatTakesThem) {
  const std::string plans =
      "plan(3); " + kMapped + "layout(tree, array); plan(BATCH); " + kMapped + "encode(u8)";
  expect_as_the_host(*emulated(program(plans)), {1, 3, 4, 100});
  const std::string others =
      "plan(100); " + kMapped + "encode(u8); plan(BATCH); " + kMapped + "layout(tree, array)";
  expect_as_the_host(*emulated(program(others)), {100, 101, kRows});
}

TEST_F(CodedPasses, ShrinkWhereMemoryRunsOut) {
  const Program mapped = program(kMapped + "encode(u8)");
  const auto expected = test::answers(*host_, block(kRows));
  unsigned refused = 0, predicted = 0;
  for (std::size_t bytes = 2000; bytes < 40'000; bytes += 500) {
    const auto gpu =
        make_predictor(mapped, make_emulator_runtime({.memory_bytes = bytes}), "it", {.fewest_rows = 16});
    if (!gpu.ok()) continue;
    const auto context = (*gpu)->make_context();
    for (unsigned again = 0; again < 3; ++again) {
      std::vector<std::int32_t> leaves(expected.leaves.size());
      const auto done = (*gpu)->predict_leaf(*context, coded(kRows), leaves.data());
      ++(done.ok() ? predicted : refused);
      if (done.ok()) {
        EXPECT_EQ(leaves, expected.leaves) << bytes;
      } else {
        EXPECT_EQ(done.error().code, ErrorCode::Environment);
      }
    }
  }
  EXPECT_GT(refused, 3u);
  EXPECT_GT(predicted, 50u);
}

TEST_F(CodedPasses, AreRefusedAsTheHostRefusesThem) {
  const auto gpu = emulated(program(kMapped + "encode(u8)"));
  std::vector<float> out(kRows * 3);
  const auto said = [&](const Predictor& predictor, const CodedRows& rows) {
    return text_of(predictor.predict(*predictor.make_context(), rows, OutputKind::Raw, out.data()));
  };
  const auto expect_both = [&](const std::string& part, const std::function<void(CodedRows&)>& damage) {
    CodedRows rows = coded(10);
    damage(rows);
    EXPECT_EQ(said(*gpu, rows), said(*host_, rows));
    EXPECT_NE(said(*gpu, rows).find(part), std::string::npos) << said(*gpu, rows);
  };
  expect_both("encoded for another program", [](CodedRows& rows) { rows.encoder = 1; });
  expect_both("columns for a program of", [](CodedRows& rows) { ++rows.columns; });
  expect_both("given are 1", [](CodedRows& rows) { rows.byte_count = 1; });
  expect_both("or the output, is null", [](CodedRows& rows) { rows.codes = nullptr; });
  expect_both("done", [](CodedRows& rows) { rows.count = 0; });
  EXPECT_EQ(said(*emulated(program(kMapped + "layout(tree, array)")), coded(10)),
            said(*host_backend(program("layout(tree, array)")).value(), coded(10)));
  const std::string mixed = "split(tree, ta, tb, 4); encode(u8); layout(ta, array)";
  EXPECT_EQ(
      said(*emulated(program("tile(batch, b0, b1, 8); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); " +
                             mixed)),
           coded(10)),
      said(*host_backend(program(mixed)).value(), coded(10)));
  const auto encoded = gpu->encode(*gpu->make_context(), block(10), codes_);
  ASSERT_FALSE(encoded.ok());
  EXPECT_EQ(encoded.error().text(),
            "this backend encodes no rows: the host does (forestvm encode), with a program for the host that "
            "has the same encoder");
}

}  // namespace
}  // namespace forestvm::kernels::test_coded_passes
