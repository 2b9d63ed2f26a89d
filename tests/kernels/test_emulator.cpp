// The emulator's own rules: kernels that keep them give the same whatever the turns; those that break them,
// as a kernel with a barrier too few or in the wrong place does, are found.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/emulator/grid.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {
namespace {

constexpr unsigned kX = 3, kY = 4;  // block.x, block.y

emulator::Grid grid_of(std::uint32_t blocks, std::uint32_t x, std::uint32_t y = 1, std::uint64_t seed = 1) {
  return {{blocks, 1, 1, x, y, 1}, 4096, seed};
}

int* shared() { return reinterpret_cast<int*>(Device::shared()); }

std::string error_of(const Result<void>& result) { return result.ok() ? "no error" : result.error().text(); }

TEST(Emulator, EveryThreadRunsOnce) {
  emulator::Emulator emulator;
  std::vector<int> runs(5 * 6 * 7);
  const auto done = emulator.run(grid_of(5, 6, 7), [&] {
    ++runs[(Device::index(0) * 7 + Device::index(kY)) * 6 + Device::index(kX)];
    EXPECT_EQ(Device::extent(0), 5u);
    EXPECT_EQ(Device::extent(kX), 6u);
    EXPECT_EQ(Device::extent(kY), 7u);
  });
  EXPECT_TRUE(done.ok()) << error_of(done);
  EXPECT_EQ(runs, std::vector<int>(runs.size(), 1));
}

/// A block adds the numbers of its threads in shared memory, in halves; without the barrier if so asked.
int sum_of_block(emulator::Emulator& emulator, std::uint32_t threads, std::uint64_t seed, bool barrier) {
  int sum = 0;
  const auto done = emulator.run(grid_of(1, threads, 1, seed), [&] {
    const unsigned i = Device::index(kX);
    shared()[i] = static_cast<int>(i);
    for (unsigned half = threads / 2; half != 0; half /= 2) {
      if (barrier) Device::sync(0);
      if (i < half) shared()[i] += shared()[i + half];
    }
    if (i == 0) sum = shared()[0];
  });
  EXPECT_TRUE(done.ok()) << error_of(done);
  return sum;
}

TEST(Emulator, BarriersMakeTurnsIrrelevant) {
  emulator::Emulator emulator;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(sum_of_block(emulator, 256, seed, true), 255 * 128);
}

TEST(Emulator, ADroppedBarrierShows) {
  emulator::Emulator emulator;
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    wrong += sum_of_block(emulator, 256, seed, false) != 255 * 128;
  EXPECT_EQ(wrong, 20);
}

TEST(Emulator, AThreadThatLeavesBeforeABarrierIsFound) {
  emulator::Emulator emulator;
  const auto done = emulator.run(grid_of(3, 8), [] {
    if (Device::index(0) == 2 && Device::index(kX) == 5) return;
    Device::sync(17);
  });
  const std::string error = error_of(done);
  EXPECT_NE(error.find("of block (2, 0, 0)"), std::string::npos) << error;
  EXPECT_NE(error.find("thread (5, 0, 0) of block (2, 0, 0) has left"), std::string::npos) << error;
  EXPECT_NE(error.find("waits at instruction 17"), std::string::npos) << error;
}

TEST(Emulator, BarriersAtDifferentPlacesAreFound) {
  emulator::Emulator emulator;
  const auto done = emulator.run(grid_of(1, 8), [] { Device::sync(Device::index(kX) == 3 ? 1 : 2); });
  EXPECT_NE(error_of(done).find("thread (3, 0, 0) of block (0, 0, 0) waits at instruction 1"),
            std::string::npos)
      << error_of(done);
  // And it goes on.
  EXPECT_EQ(sum_of_block(emulator, 64, 1, true), 63 * 32);
}

TEST(Emulator, SharedMemoryIsPoisonedForEveryBlock) {
  emulator::Emulator emulator;
  const auto done = emulator.run(grid_of(3, 1), [] {
    float before;
    std::memcpy(&before, Device::shared(), sizeof before);
    EXPECT_NE(before, before);
    *shared() = 0;
  });
  EXPECT_TRUE(done.ok()) << error_of(done);
}

TEST(Emulator, AtomicsAdd) {
  emulator::Emulator emulator;
  float sum = 0;
  std::uint64_t count = 0;
  const auto done = emulator.run(grid_of(4, 32), [&] {
    Device::fetch_add(sum, 0.5f);
    Device::fetch_add(count, std::uint64_t{2});
  });
  EXPECT_TRUE(done.ok()) << error_of(done);
  EXPECT_EQ(sum, 64.0f);
  EXPECT_EQ(count, 256u);
}

}  // namespace
}  // namespace forestvm::kernels
