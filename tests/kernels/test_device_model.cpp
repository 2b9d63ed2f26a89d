// The number of blocks that an SM holds, against numbers worked out by hand from the CUDA programming guide's
// table and the granularities of cuda_occupancy.h; also that the tables are complete.
#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include <forestvm/internal/names.hpp>

#include "kernels/account/device_model.hpp"

namespace forestvm::kernels::test_device_model {
namespace {

void expect(const Occupancy& found, std::uint32_t blocks, std::uint32_t warps, OccupancyLimit limit) {
  EXPECT_EQ(found.blocks, blocks);
  EXPECT_EQ(found.warps, warps);
  EXPECT_EQ(name_of(found.limit), name_of(limit));
}

TEST(Occupancy, ByRegistersInUnitsOf256AWarp) {
  // 64 x 32 = 2048 registers per warp: 8 warps in each quarter of the 65,536.
  expect(occupancy(Architecture::sm_90, 128, 0, 64), 8, 32, OccupancyLimit::Registers);
  // 51 x 32 = 1632, rounded up to 1792: 9 in each quarter, not 10.
  expect(occupancy(Architecture::sm_90, 128, 0, 51), 9, 36, OccupancyLimit::Registers);
  // 65 x 32 = 2080, rounded up to 2304: 7 in each quarter.
  expect(occupancy(Architecture::sm_90, 128, 0, 65), 7, 28, OccupancyLimit::Registers);
  // 40 x 32 = 1280: 12 warps in each quarter, 48 in all. The SM's 65,536 registers together would hold 51.
  expect(occupancy(Architecture::sm_90, 96, 0, 40), 16, 48, OccupancyLimit::Registers);
  // 32 warps of 80 x 32 registers need 81,920.
  expect(occupancy(Architecture::sm_90, 1024, 0, 80), 0, 0, OccupancyLimit::Registers);
}

TEST(Occupancy, ByThreads) {
  expect(occupancy(Architecture::sm_90, 128, 0, 32), 16, 64, OccupancyLimit::Threads);
  expect(occupancy(Architecture::sm_89, 256, 0, 32), 6, 48, OccupancyLimit::Threads);
  expect(occupancy(Architecture::sm_75, 128, 0, 64), 8, 32, OccupancyLimit::Threads);
  // 33 threads take two warps.
  expect(occupancy(Architecture::sm_75, 33, 0, 16), 16, 32, OccupancyLimit::Threads);
}

TEST(Occupancy, ByBlocks) {
  expect(occupancy(Architecture::sm_90, 32, 0, 32), 32, 32, OccupancyLimit::Blocks);
  expect(occupancy(Architecture::sm_89, 32, 0, 32), 24, 24, OccupancyLimit::Blocks);
}

TEST(Occupancy, BySharedMemoryWithOneKibReservedForABlock) {
  // 49,152 + 1,024 of 233,472.
  expect(occupancy(Architecture::sm_90, 128, 48u << 10, 32), 4, 16, OccupancyLimit::SharedMemory);
  // 57,344 + 1,024 would fit four times into 233,472 exactly; a byte more is 128 more.
  expect(occupancy(Architecture::sm_90, 128, 57344, 32), 4, 16, OccupancyLimit::SharedMemory);
  expect(occupancy(Architecture::sm_90, 128, 57345, 32), 3, 12, OccupancyLimit::SharedMemory);
  expect(occupancy(Architecture::sm_90, 128, 232448, 32), 1, 4, OccupancyLimit::SharedMemory);
  expect(occupancy(Architecture::sm_90, 128, 232449, 32), 0, 0, OccupancyLimit::SharedMemory);
  // sm_75 reserves no shared memory.
  expect(occupancy(Architecture::sm_75, 128, 32u << 10, 32), 2, 8, OccupancyLimit::SharedMemory);
}

TEST(Occupancy, OfWavefrontsOf64) {
  // Two wavefronts per block; 64 x 64 = 4096 registers per wavefront, 8 in each quarter of 131,072.
  expect(occupancy(Architecture::gfx90a, 128, 0, 64), 16, 32, OccupancyLimit::Threads);
  expect(occupancy(Architecture::gfx90a, 128, 0, 128), 8, 16, OccupancyLimit::Registers);
  // 98 x 64 = 6272, rounded up to 6656: 4 wavefronts in each quarter.
  expect(occupancy(Architecture::gfx942, 128, 0, 98), 8, 16, OccupancyLimit::Registers);
}

TEST(DeviceModels, HaveNamesOfTheirOwnAndLimits) {
  std::set<std::string_view> names;
  for (const DeviceModel& device : device_models()) {
    EXPECT_TRUE(names.insert(device.name).second) << device.name;
    EXPECT_EQ(limits_of(device).shared_bytes, info(device.architecture).block_shared);
    EXPECT_EQ(limits_of(device).threads, 1024u);
  }
}

TEST(DeviceModels, EveryLayoutHasRegistersThatFitABlockOf1024) {
  for (unsigned layout = 0; is_declared(static_cast<Layout>(layout)); ++layout)
    for (const DeviceModel& device : device_models()) {
      const std::uint32_t registers = registers_of(static_cast<Layout>(layout), device.architecture);
      EXPECT_GT(occupancy(device.architecture, 1024, 0, registers).blocks, 0u)
          << name_of(static_cast<Layout>(layout)) << " on " << device.name;
    }
}

}  // namespace
}  // namespace forestvm::kernels::test_device_model
