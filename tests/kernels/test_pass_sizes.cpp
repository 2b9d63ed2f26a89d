// The number of rows of each pass. A pass counts what it takes of the device's memory and nothing else, and
// a call is cut where a grid takes no more rows. The GPU is the one of fake_gpu.hpp, which records the rows
// of each launch.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/core/encoder.hpp>

#include "fake_gpu.hpp"
#include "kernels/backend/pass_sizes.hpp"
#include "kernels/backend/predictor.hpp"
#include "support/small_models.hpp"
#include "vm/small_program.hpp"

namespace forestvm::kernels::test_pass_sizes {
namespace {

constexpr std::size_t kRows = 300;

using Counts = std::vector<std::uint32_t>;

/// Compiles to one launch, with sums in shared memory.
const std::string kRowsInBlocks =
    "tile(batch, b0, b1, 8); reorder(b0, b1, tree); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); ";

/// Compiles to three launches; the sums and three copies of them are in the device's memory.
const std::string kTreesInGrid =
    "tile(batch, b0, b1, 8); tile(tree, t0, t1, 2); reorder(b0, t0, b1, t1); gpuDimension(t0, grid.z); "
    "gpuDimension(b0, grid.x); gpuDimension(b1, block.x); ";
constexpr std::size_t kSumBytes = 4 * 2 * sizeof(float);  ///< bytes per row for two outputs

/// Maps rows to the second dimension of the grid, which has 80 blocks.
const std::string kRowsInSmallGrid =
    "tile(batch, b0, b1, 2); reorder(b0, b1, tree); gpuDimension(b0, grid.y); gpuDimension(b1, block.x); ";

class PassesOfRows : public testing::Test {
 protected:
  PassesOfRows() {
    calls_.free = std::size_t{1} << 40;
    calls_.runs_kernels = true;
    for (std::size_t i = 0; i < 4 * kRows; ++i) rows_.push_back(static_cast<float>(i * 7 % 31) * 0.3f - 3);
    expected_ = scores(*host_, block());
  }

  RowBlock block() const { return {rows_.data(), kRows, 4}; }
  DeviceRows on_device() const { return {rows_.data(), kRows, 4, 0, nullptr}; }

  std::unique_ptr<Predictor> on_gpu(const std::string& schedule, const PassBounds& bounds = {}) const {
    auto predictor = make_predictor(test::compiled(model_, schedule), Gpu::open(0).value(), "it", bounds);
    EXPECT_TRUE(predictor.ok()) << (predictor.ok() ? "" : predictor.error().text());
    return std::move(predictor).value();
  }

  static std::vector<float> scores(const Predictor& predictor, const AnyRows& rows) {
    std::vector<float> out(kRows * 2);
    const auto done = predictor.predict(*predictor.make_context(), rows, OutputKind::Raw, out.data());
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().text());
    return out;
  }

  /// Returns the rows of each launch of a call.
  Counts passes(const Predictor& gpu, const AnyRows& rows) {
    calls_.made.clear();
    EXPECT_EQ(scores(gpu, rows), expected_);
    Counts counts;
    for (const std::string& text : std::exchange(calls_.made, {})) {
      const std::size_t at = text.find(" bytes, ");
      if (!text.starts_with("launch") || at == std::string::npos) continue;
      counts.push_back(static_cast<std::uint32_t>(std::stoul(text.substr(at + 8))));
    }
    return counts;
  }

  FakeCalls calls_;
  const Model model_ = support::model_of(support::six_trees(), 2);
  const std::unique_ptr<Predictor> host_ = host_backend(test::compiled(model_, "")).value();
  std::vector<float> rows_, expected_;
};

/// Repeats each pass three times, for passes of three launches.
Counts thrice(const Counts& passes) {
  Counts launches;
  for (const std::uint32_t rows : passes) launches.insert(launches.end(), 3, rows);
  return launches;
}

TEST_F(PassesOfRows, CountNothingOfRowsThatLieThere) {
  EXPECT_EQ(passes(*on_gpu(kRowsInBlocks, {.pass_bytes = 1}), on_device()), Counts{kRows});
}

TEST_F(PassesOfRows, CountSumsInTheDevicesMemory) {
  EXPECT_EQ(passes(*on_gpu(kTreesInGrid, {.pass_bytes = 128 * kSumBytes}), on_device()),
            thrice({128, 128, 44}));
}

TEST_F(PassesOfRows, CountRowsAndResultsThatAreCopied) {
  constexpr std::size_t kCopied = (4 + 2) * sizeof(float);
  EXPECT_EQ(passes(*on_gpu(kRowsInBlocks, {.pass_bytes = 128 * kCopied}), block()), (Counts{128, 128, 44}));
  EXPECT_EQ(passes(*on_gpu(kTreesInGrid, {.pass_bytes = 128 * (kCopied + kSumBytes)}), block()),
            thrice({128, 128, 44}));
}

/// Calls with encoded rows are cut between blocks of 64 rows.
TEST_F(PassesOfRows, CountCodesInPlaceOfRows) {
  const std::string encoded = kRowsInBlocks + "encode(u8); layout(tree, array4)";
  const auto host = host_backend(test::compiled(model_, "encode(u8)")).value();
  const std::size_t columns = host->program().columns().size();
  std::vector<std::uint8_t> codes(coded_bytes(kRows, columns));
  const auto coded = host->encode(*host->make_context(), block(), codes);
  ASSERT_TRUE(coded.ok()) << coded.error().text();
  const PassBounds bounds{.pass_bytes = 130 * (columns + 2 * sizeof(float))};
  EXPECT_EQ(passes(*on_gpu(encoded, bounds), *coded), (Counts{128, 128, 44}));
  // Rows that are already on the device take memory only for their codes.
  EXPECT_EQ(passes(*on_gpu(encoded, {.pass_bytes = 130 * columns}), on_device()), (Counts{130, 130, 40}));
}

TEST_F(PassesOfRows, TakeHalfOfTheMemoryThatIsFree) {
  const auto on_stream = on_gpu(kTreesInGrid, {.fewest_rows = 16}),
             in_lanes = on_gpu(kTreesInGrid, {.fewest_rows = 16});
  calls_.free = 2 * 100 * kSumBytes;
  EXPECT_EQ(passes(*on_stream, on_device()), thrice({100, 100, 100}));
  // Two lanes share the memory, and each also holds rows and results.
  calls_.free = 2 * 2 * 100 * ((4 + 2) * sizeof(float) + kSumBytes);
  EXPECT_EQ(passes(*in_lanes, block()), thrice({100, 100, 100}));
}

TEST_F(PassesOfRows, AreCutWhereTheGridTakesNoMore) {
  const auto gpu = on_gpu(kRowsInSmallGrid);
  EXPECT_EQ(passes(*gpu, on_device()), (Counts{160, 140}));
  EXPECT_EQ(passes(*gpu, block()), (Counts{160, 140}));
}

/// The rows that are left for the last pass use another plan.
TEST_F(PassesOfRows, AreCutByThePlanOfEach) {
  const auto gpu = on_gpu(
      "plan(150); tile(batch, b0, b1, 1); reorder(b0, b1, tree); gpuDimension(b0, grid.y); plan(BATCH); " +
      kRowsInSmallGrid);
  EXPECT_EQ(passes(*gpu, on_device()), (Counts{160, 80, 60}));
}

TEST(PassSizes, AreThoseOfEachPlanAndOutput) {
  const Model model = support::model_of(support::six_trees(), 2);
  const Program program =
      test::compiled(model, "plan(100); " + kTreesInGrid + "plan(BATCH); " + kRowsInSmallGrid);
  const auto sizes = PassSizes::make(Linker(program), {});
  ASSERT_TRUE(sizes.ok()) << sizes.error().text();
  for (const std::uint32_t rows : {1u, 100u}) {
    EXPECT_EQ(sizes->of(rows, OutputKind::Value).rows, 100u);
    EXPECT_EQ(sizes->of(rows, OutputKind::Value).row_bytes, kSumBytes);
    EXPECT_EQ(sizes->of(rows, OutputKind::Leaf).row_bytes, 0u);
  }
  for (const std::uint32_t rows : {101u, UINT32_MAX}) {
    EXPECT_EQ(sizes->of(rows, OutputKind::Raw).rows, 2 * 65'535u);
    EXPECT_EQ(sizes->of(rows, OutputKind::Raw).row_bytes, 0u);
  }
}

TEST(PassSizes, RefuseWhatFewerRowsDoNotHelp) {
  const Model model = support::model_of(support::six_trees(), 2);
  const auto said = [&](const std::string& schedule, const DeviceLimits& limits) {
    const auto sizes = PassSizes::make(Linker(test::compiled(model, schedule)), limits);
    return sizes.ok() ? "accepted" : sizes.error().text();
  };
  // Fewer rows would fit into shared memory, but calls are not cut for that.
  EXPECT_EQ(said("tile(batch, b0, b1, 70000); cache(b0); gpuDimension(b0, grid.x)", {}),
            "schedule: the cached rows take 1120256 bytes of shared memory beside the 0 that are taken; a "
            "block has 232448");
  DeviceLimits small;
  small.grid = {100, 100, 2};
  EXPECT_EQ(said(kTreesInGrid, small), "schedule: 3 blocks in grid.z, the device takes at most 2");
}

TEST(PassSizes, CountThreadsOfAGridWhereADeviceDoes) {
  const Model model = support::model_of(support::six_trees(), 2);
  DeviceLimits limits;
  limits.grid_threads = 1000;
  const auto sizes = PassSizes::make(Linker(test::compiled(model, kRowsInBlocks)), limits);
  ASSERT_TRUE(sizes.ok()) << sizes.error().text();
  EXPECT_EQ(sizes->of(1, OutputKind::Raw).rows, 1000u);
}

}  // namespace
}  // namespace forestvm::kernels::test_pass_sizes
