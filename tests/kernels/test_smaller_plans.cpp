// Plans whose blocks need more shared memory than a device has: calls take the plan of fewer rows that is nearest and
// fits, and predictions are those of the host.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/named_schedules.hpp>

#include "kernels/account/accounting.hpp"
#include "kernels/backend/pass_sizes.hpp"
#include "kernels/backend/predictor.hpp"
#include "kernels/emulator/runtime.hpp"
#include "kernels/link/link.hpp"
#include "vm/small_program.hpp"

namespace forestvm::kernels::test_smaller_plans {
namespace {

constexpr std::size_t kFeatures = 3;
/// Bytes that 64, 32, 8 and 4 rows take in shared memory.
constexpr std::uint32_t kOf64 = 768, kOf32 = 384, kOf8 = 128, kOf4 = 64;

const std::string kOnHost = "layout(tree, sparse)";

/// Returns a plan for calls of up to `most` rows, with blocks of `rows` rows in shared memory.
std::string plan(const std::string& most, unsigned rows, const std::string& more = "") {
  return "plan(" + most + "); tile(batch, b0, b1, " + std::to_string(rows) +
         "); gpuDimension(b0, grid.x); gpuDimension(b1, block.x); cache(b0)" + more + "; ";
}

DeviceLimits limits_of_bytes(std::uint32_t bytes) {
  DeviceLimits limits;
  limits.shared_bytes = bytes;
  return limits;
}

/// Returns the number of rows by which the plan is chosen for a call of `rows` rows on a device whose blocks have
/// `bytes` bytes of shared memory; 0 if the call is refused.
std::uint32_t plan_taken(const Linker& linker, std::uint32_t rows, std::uint32_t bytes) {
  const auto linked = linker.link({rows, rows, OutputKind::Raw}, limits_of_bytes(bytes));
  if (linked.ok()) return linked->plan_rows;
  EXPECT_NE(linked.error().text().find("bytes of shared memory"), std::string::npos) << linked.error().text();
  return 0;
}

class SmallerPlans : public testing::Test {
 protected:
  Program program(const std::string& schedule) const {
    return test::compiled(model_, schedule, Contract::Reproducible);
  }
  RowBlock block(std::size_t count) const { return {rows_.data(), count, kFeatures}; }

  static constexpr std::size_t kRows = 300;
  Model model_ = test::small_forest();
  const std::vector<float> rows_ = test::small_rows(kRows, kFeatures);
};

TEST_F(SmallerPlans, AreTheNearestThatFit) {
  const Program plans = program(plan("10", 4) + plan("100", 32) + plan("200", 8) + plan("BATCH", 64));
  const Linker linker(plans);
  EXPECT_EQ(plan_taken(linker, 250, kOf64), 250u);
  EXPECT_EQ(plan_taken(linker, 250, kOf64 - 1), 200u);
  EXPECT_EQ(plan_taken(linker, 200, kOf64 - 1), 200u);
  EXPECT_EQ(plan_taken(linker, 100, kOf32 - 1), 10u);
  EXPECT_EQ(plan_taken(linker, 30, kOf32 - 1), 10u);  // as 100 rows, whose block does not fit
  EXPECT_EQ(plan_taken(linker, 10, kOf32 - 1), 10u);
  EXPECT_EQ(plan_taken(linker, 250, kOf8 - 1), 10u);
  EXPECT_EQ(plan_taken(linker, 250, kOf4), 10u);
  EXPECT_EQ(plan_taken(linker, 250, kOf4 - 1), 0u);
}

/// The sizes of passes are those of the plan that their calls take, whatever their rows.
TEST_F(SmallerPlans, AreThoseOfPassSizes) {
  const Program plans = program(
      "plan(10); tile(batch, b0, b1, 4); tile(tree, t0, t1, 2); reorder(b0, t0, b1, t1); "
      "gpuDimension(b0, grid.x); gpuDimension(t0, grid.z); gpuDimension(b1, block.x); " +
      plan("BATCH", 64));
  const Linker linker(plans);
  const DeviceLimits limits = limits_of_bytes(kOf64 - 1);
  const auto sizes = PassSizes::make(linker, limits);
  ASSERT_TRUE(sizes.ok()) << sizes.error().text();
  for (const std::uint32_t rows : {5u, 10u, 11u, 30u, 250u}) {
    const auto linked = linker.link({rows, rows, OutputKind::Raw}, limits);
    ASSERT_TRUE(linked.ok()) << linked.error().text();
    const std::size_t bytes =
        std::accumulate(linked->global_bytes.begin(), linked->global_bytes.end(), std::size_t{0});
    EXPECT_NE(bytes, 0u) << rows;
    EXPECT_EQ(sizes->of(rows, OutputKind::Raw).row_bytes, bytes / rows) << rows;
  }
}

/// Other limits are not those of a plan: calls of fewer rows may keep them.
TEST_F(SmallerPlans, AreForSharedMemoryAlone) {
  const Program plans = program(plan("10", 4) + plan("BATCH", 64));
  DeviceLimits few_threads;
  few_threads.threads = 63;
  const auto refused = Linker(plans).link({100, 100, OutputKind::Raw}, few_threads);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().text(), "schedule: blocks of 64 threads, the device takes at most 63");
}

TEST_F(SmallerPlans, PredictAsTheHost) {
  const auto host = host_backend(program(kOnHost)).value();
  const Program plans = program(plan("10", 4) + plan("100", 32) + plan("BATCH", 64));
  for (const std::uint32_t bytes : {kOf64, kOf64 - 1, kOf32 - 1}) {
    const auto gpu = make_predictor(plans, make_emulator_runtime({.limits = limits_of_bytes(bytes)}), "it");
    ASSERT_TRUE(gpu.ok()) << gpu.error().text();
    for (const std::size_t count : {1u, 10u, 11u, 100u, 101u, 300u})
      EXPECT_EQ(test::answers(**gpu, block(count)), test::answers(*host, block(count)))
          << bytes << ' ' << count;
  }
  const auto refused =
      make_predictor(plans, make_emulator_runtime({.limits = limits_of_bytes(kOf4 - 1)}), "it");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.error().text(),
      "schedule: the cached rows take 64 bytes of shared memory beside the 0 that are taken; a block has "
      "63");
}

/// Calls of encoded rows have no values, so that a plan that walks codes is replaced by another such plan only.
TEST_F(SmallerPlans, OfEncodedRowsWalkCodes) {
  const std::string codes = "; encode(u8)";
  const Linker linker(program(plan("10", 1, codes) + plan("100", 4) + plan("BATCH", 300, codes)));
  const std::uint32_t bytes = 500;  // fewer than 300 rows need, as values or as codes
  EXPECT_EQ(plan_taken(linker, 300, 100'000), 300u);
  EXPECT_EQ(plan_taken(linker, 300, bytes), 10u);
  EXPECT_EQ(plan_taken(Linker(program(plan("100", 4) + plan("BATCH", 300, codes))), 300, bytes), 0u);
  EXPECT_EQ(plan_taken(Linker(program(plan("100", 4, codes) + plan("BATCH", 300))), 300, bytes), 100u);
}

/// Blocks of schedule `gpu` have up to 160 kB of shared memory where rows are wide. A GPU of which a block has less
/// takes other plans.
TEST(WideRows, OfScheduleGpuPredictOnEveryGpu) {
  constexpr std::size_t kWide = 1000, kCall = 520;  // 512 rows take other blocks
  const Model model = test::small_forest({.trees = 300, .features = kWide, .outputs = 1, .depth = 5});
  const std::vector<float> rows = test::small_rows(kCall, kWide);
  for (const Contract contract : {Contract::Trainer, Contract::Reproducible}) {
    const Program program = test::compiled(model, print(*schedule_by_name(model, "gpu", contract)), contract);
    const auto host = host_backend(test::compiled(model, kOnHost, contract)).value();
    const auto expected = test::answers(*host, RowBlock{rows.data(), kCall, kWide});
    for (const DeviceModel& device : device_models()) {
      const auto large = account(program, {1u << 20, 1u << 20, OutputKind::Raw}, device);
      ASSERT_TRUE(large.ok()) << device.name << ": " << large.error().text();
      EXPECT_EQ(large->plan_rows == 1u << 20, info(device.architecture).block_shared >= 160u << 10)
          << device.name << ' ' << large->plan_rows;
      EXPECT_LE(large->phases[0].shared_bytes, info(device.architecture).block_shared) << device.name;
      const auto gpu = make_predictor(program, make_emulator_runtime({.limits = limits_of(device)}), "it");
      ASSERT_TRUE(gpu.ok()) << device.name << ": " << gpu.error().text();
      if (device.name != "h200" && device.name != "t4") continue;  // the others have as much memory, or more
      EXPECT_EQ(test::answers(**gpu, RowBlock{rows.data(), kCall, kWide}), expected) << device.name;
    }
  }
}

}  // namespace
}  // namespace forestvm::kernels::test_smaller_plans
