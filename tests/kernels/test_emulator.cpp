// The emulator's own rules: correct kernels give the same results in every order of threads; kernels that
// break a rule are found, and the error names threads. For kernels with one mistake see test_mutants.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/vendor/device.hpp"
#include "kernels/vendor/emulator/grid.hpp"

namespace forestvm::kernels::test_emulator {
namespace {

constexpr unsigned kX = 3, kY = 4;  // block.x, block.y

emulator::Grid grid_of(std::uint32_t blocks, std::uint32_t x, std::uint32_t y = 1, std::uint64_t seed = 1,
                       unsigned warp = 32) {
  return {{blocks, 1, 1, x, y, 1}, 4096, seed, warp};
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

/// Adds the numbers of a block's threads in shared memory, by halving.
int sum_of_block(emulator::Emulator& emulator, std::uint32_t threads, std::uint64_t seed) {
  int sum = 0;
  const auto done = emulator.run(grid_of(1, threads, 1, seed), [&] {
    const unsigned i = Device::index(kX);
    shared()[i] = static_cast<int>(i);
    for (unsigned half = threads / 2; half != 0; half /= 2) {
      Device::sync(0);
      if (i < half) shared()[i] += shared()[i + half];
    }
    if (i == 0) sum = shared()[0];
  });
  EXPECT_TRUE(done.ok()) << error_of(done);
  return sum;
}

TEST(Emulator, BarriersMakeTurnsIrrelevant) {
  emulator::Emulator emulator;
  for (std::uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(sum_of_block(emulator, 256, seed), 255 * 128);
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
  // The emulator still works after the error.
  EXPECT_EQ(sum_of_block(emulator, 64, 1), 63 * 32);
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
  const std::uint64_t before = emulator::atomics_counted();
  const auto done = emulator.run(grid_of(4, 32), [&] {
    Device::fetch_add(sum, 0.5f);
    Device::fetch_add(count, std::uint64_t{2});
  });
  EXPECT_TRUE(done.ok()) << error_of(done);
  EXPECT_EQ(sum, 64.0f);
  EXPECT_EQ(count, 256u);
  EXPECT_EQ(emulator::atomics_counted() - before, 2 * 4 * 32u);
}

/// Adds the values of each warp's threads and returns the sums of the warps.
template <class T>
std::vector<T> sums_of_warps(const emulator::Grid& grid) {
  emulator::Emulator emulator;
  const std::uint32_t threads = grid.extent[kX] * grid.extent[kY];
  std::vector<T> sums((threads + grid.warp - 1) / grid.warp);
  const auto done = emulator.run(grid, [&] {
    EXPECT_EQ(Device::warp_size(), grid.warp);
    const unsigned i = Device::index(kY) * Device::extent(kX) + Device::index(kX);
    const unsigned warp = i / Device::warp_size(), lane = i % Device::warp_size();
    const unsigned lanes = std::min(Device::warp_size(), threads - warp * Device::warp_size());
    T sum{};
    sum += static_cast<int>(i);
    for (unsigned by = Device::warp_size() / 2; by != 0; by /= 2) {
      const T more = Device::shuffle_down(sum, lane + by < lanes ? by : 0, 1);
      if (lane + by < lanes) sum += more;
    }
    if (lane == 0) sums[warp] = sum;
  });
  EXPECT_TRUE(done.ok()) << error_of(done);
  return sums;
}

/// A number in the upper half of 16 bytes.
struct Wide {
  std::int64_t low = 0, high = 0;
  Wide& operator+=(int more) {
    high += more;
    return *this;
  }
  Wide& operator+=(const Wide& more) {
    low += more.low;
    high += more.high;
    return *this;
  }
  operator int() const { return low == 0 ? static_cast<int>(high) : -1; }
};

TEST(Emulator, ShufflesStayInTheirWarp) {
  for (const unsigned warp : {32u, 64u})
    for (const std::uint32_t threads : {1u, 31u, 32u, 33u, 64u, 70u, 100u, 256u})
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        std::vector<int> wanted((threads + warp - 1) / warp);
        for (std::uint32_t i = 0; i < threads; ++i) wanted[i / warp] += static_cast<int>(i);
        const auto as_ints = [](const auto& sums) { return std::vector<int>(sums.begin(), sums.end()); };
        EXPECT_EQ(sums_of_warps<int>(grid_of(1, threads, 1, seed, warp)), wanted);
        EXPECT_EQ(as_ints(sums_of_warps<double>(grid_of(1, threads, 1, seed, warp))), wanted);
        EXPECT_EQ(as_ints(sums_of_warps<Wide>(grid_of(1, threads, 1, seed, warp))), wanted);
      }
}

TEST(Emulator, ThreadsAreNumberedXFirst) {
  std::vector<int> wanted(2);
  for (int i = 0; i < 5 * 9; ++i) wanted[static_cast<std::size_t>(i / 32)] += i;
  EXPECT_EQ(sums_of_warps<int>(grid_of(1, 5, 9)), wanted);
}

TEST(Emulator, WarpsGoOnAlone) {
  emulator::Emulator emulator;
  const auto done = emulator.run(grid_of(1, 96), [] {
    const unsigned warp = Device::index(kX) / 32;
    for (unsigned i = 0; i < 5 * warp; ++i) Device::shuffle_down(1.0f, 0, i);
    Device::sync(9);
  });
  EXPECT_TRUE(done.ok()) << error_of(done);
}

TEST(Emulator, AShuffleThatSomeOfTheWarpLeaveOutIsFound) {
  emulator::Emulator emulator;
  const auto leaves = emulator.run(grid_of(1, 48), [] {
    if (Device::index(kX) != 40) Device::shuffle_down(1, 0, 17);
  });
  EXPECT_EQ(error_of(leaves),
            "a shuffle that not all threads of a warp come to: thread (32, 0, 0) of block (0, 0, 0) waits at "
            "the shuffle of instruction 17, thread (40, 0, 0) of block (0, 0, 0) has left");
  const auto waits = emulator.run(grid_of(1, 4), [] {
    if (Device::index(kX) < 2) Device::shuffle_down(1, 0, 17);
    Device::sync(18);
  });
  EXPECT_NE(error_of(waits).find("thread (2, 0, 0) of block (0, 0, 0) waits at instruction 18"),
            std::string::npos)
      << error_of(waits);
  const auto elsewhere =
      emulator.run(grid_of(1, 4), [] { Device::shuffle_down(1, 0, Device::index(kX) == 3 ? 2 : 1); });
  EXPECT_NE(
      error_of(elsewhere).find("thread (3, 0, 0) of block (0, 0, 0) waits at the shuffle of instruction 2"),
      std::string::npos)
      << error_of(elsewhere);
}

TEST(Emulator, ALoadFromAnAddressThatIsNotAlignedIsFound) {
  emulator::Emulator emulator;
  struct Words {
    std::uint32_t words[3];
  };
  struct alignas(16) Four {
    float values[4];
  };
  alignas(16) static constexpr std::byte kFrom[64] = {};
  const auto error = [&](const std::function<void()>& kernel) {
    return error_of(emulator.run(grid_of(1, 1), kernel));
  };
  const auto at = [&]<class T>(T, std::uint32_t offset) {
    const std::string global =
        error([&] { Device::load_global(reinterpret_cast<const T*>(kFrom + offset)); });
    EXPECT_EQ(error([&] { Device::load_shared<T>(offset); }), global);
    return global;
  };
  const std::string who = "thread (0, 0, 0) of block (0, 0, 0) ";
  EXPECT_EQ(at(1.0f, 4), "no error");
  EXPECT_EQ(at(1.0f, 2), who + "loads 4 bytes from an address that is not aligned to 4");
  EXPECT_EQ(at(1.0, 8), "no error");
  EXPECT_EQ(at(1.0, 4), who + "loads 8 bytes from an address that is not aligned to 8");
  EXPECT_EQ(at(Words{}, 4), "no error");
  EXPECT_EQ(at(Words{}, 2), who + "loads 12 bytes from an address that is not aligned to 4");
  EXPECT_EQ(at(Four{}, 16), "no error");
  EXPECT_EQ(at(Four{}, 8), who + "loads 16 bytes from an address that is not aligned to 16");
}

TEST(Emulator, AShuffleFromALaneThatIsNotThereIsFound) {
  emulator::Emulator emulator;
  const auto done = emulator.run(grid_of(1, 40), [] {
    const unsigned lane = Device::index(kX) % 32;
    Device::shuffle_down(1, lane < 16 ? 16 : 0, 3);
  });
  EXPECT_EQ(
      error_of(done),
      "a shuffle from a lane that is not there: thread (32, 0, 0) of block (0, 0, 0), lane 0 of 8, reads "
      "16 lanes on at instruction 3");
}

TEST(Emulator, CopiesArriveWhenTheyAreWaitedFor) {
  emulator::Emulator emulator;
  alignas(16) const int from[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const auto done = emulator.run(grid_of(2, 3), [&] {
    const unsigned i = Device::index(kX), bytes = 4u << i;
    const auto* const source = reinterpret_cast<const std::byte*>(from) + std::size_t{16} * i;
    std::byte* const to = Device::shared() + std::size_t{16} * i;
    Device::copy_async(to, source, bytes);
    EXPECT_EQ(shared()[4 * i], -1);
    Device::wait_copies();
    EXPECT_EQ(std::memcmp(to, source, bytes), 0);
    Device::sync(0);
    EXPECT_EQ(shared()[0], 1);
    EXPECT_EQ(shared()[1], -1);
    EXPECT_EQ(shared()[11], 12);
  });
  EXPECT_TRUE(done.ok()) << error_of(done);
}

TEST(Emulator, CopiesThatAGpuWouldNotMakeAreFound) {
  emulator::Emulator emulator;
  alignas(16) static constexpr std::byte kFrom[64] = {};
  const auto error = [&](std::size_t to, std::size_t from, unsigned bytes) {
    return error_of(emulator.run(grid_of(1, 2), [&] {
      if (Device::index(kX) == 1) Device::copy_async(Device::shared() + to, kFrom + from, bytes);
    }));
  };
  const std::string who = "thread (1, 0, 0) of block (0, 0, 0) copies ";
  EXPECT_EQ(error(4080, 16, 16), "no error");
  EXPECT_EQ(error(0, 0, 12), who + "12 bytes at once: 4, 8 or 16 can be");
  EXPECT_EQ(error(8, 0, 16), who + "16 bytes between addresses that are not aligned to as many");
  EXPECT_EQ(error(0, 4, 8), who + "8 bytes between addresses that are not aligned to as many");
  EXPECT_EQ(error(4096, 0, 4), who + "to an address outside the block's shared memory");
}

emulator::Grid grid_of_bulk_copies(std::uint32_t threads) {
  emulator::Grid grid = grid_of(1, threads);
  grid.bulk_copies = true;
  return grid;
}

TEST(Emulator, BulkCopiesArriveWhenTheFirstThreadWaitsForThem) {
  emulator::Emulator emulator;
  alignas(16) static constexpr int kFrom[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto done = emulator.run(grid_of_bulk_copies(7), [] {
    const unsigned i = Device::index(kX);
    EXPECT_TRUE(Device::has_bulk_copies());
    if (i == 2) Device::make_bulk_barrier(64);
    if (i == 3) std::memset(Device::shared(), 0, 32);
    Device::sync(0);
    for (std::uint32_t phase = 0; phase < 3; ++phase) {
      if (i == 4) {
        Device::expect_bulk(64, 32);
        for (std::uint32_t half = 0; half < 2; ++half)
          Device::copy_bulk(16 * half, reinterpret_cast<const std::byte*>(kFrom) + std::size_t{16} * half, 16,
                            64);
        EXPECT_EQ(shared()[phase], -1);
      }
      Device::wait_bulk(64, phase % 2, 1);
      EXPECT_EQ(std::memcmp(shared(), kFrom, sizeof kFrom), 0);
      Device::sync(2);
    }
  });
  EXPECT_TRUE(done.ok()) << error_of(done);
}

TEST(Emulator, BulkCopiesThatAGpuWouldNotMakeAreFound) {
  emulator::Emulator emulator;
  alignas(16) static constexpr std::byte kFrom[64] = {};
  constexpr std::uint32_t kAt = 128;  // a barrier
  const auto error = [&](const std::function<void()>& wrong) {
    return error_of(emulator.run(grid_of_bulk_copies(1), [&] {
      Device::make_bulk_barrier(kAt);
      wrong();
    }));
  };
  const std::string who = "thread (0, 0, 0) of block (0, 0, 0) ";
  EXPECT_EQ(error([] { Device::make_bulk_barrier(68); }),
            who + "makes a barrier of bulk copies that is not aligned to 8 bytes");
  EXPECT_EQ(error([] { Device::make_bulk_barrier(4096); }),
            who + "makes a barrier of bulk copies outside the block's shared memory");
  EXPECT_EQ(error([] { Device::make_bulk_barrier(kAt); }),
            who + "makes a barrier of bulk copies a second time");
  EXPECT_EQ(error([] { Device::expect_bulk(256, 16); }),
            who + "uses a barrier of bulk copies where none is, or is no longer");
  EXPECT_EQ(error([] {
              std::memset(Device::shared() + kAt, 0, 8);
              Device::wait_bulk(kAt, 0, 1);
            }),
            who + "uses a barrier of bulk copies where none is, or is no longer");
  EXPECT_EQ(error([] { Device::expect_bulk(kAt, 1 << 20); }),
            who + "expects 1048576 bytes of bulk copies: a phase counts at most 1048575");
  EXPECT_EQ(error([] {
              Device::expect_bulk(kAt, 16);
              Device::expect_bulk(kAt, 16);
            }),
            who + "expects bulk copies where others are under way");
  const auto of_copy = [&](std::uint32_t to, std::size_t from, std::uint32_t bytes) {
    return error([&] { Device::copy_bulk(to, kFrom + from, bytes, kAt); });
  };
  EXPECT_EQ(of_copy(16, 16, 32), "no error");
  for (const std::string& wrong : {of_copy(8, 0, 16), of_copy(0, 8, 16), of_copy(0, 0, 8)})
    EXPECT_EQ(wrong, who + "copies in bulk what is not aligned to 16 bytes");
  EXPECT_EQ(of_copy(0, 0, 0), who + "copies nothing in bulk");
  EXPECT_EQ(of_copy(4080, 0, 32), who + "copies in bulk to an address outside the block's shared memory");
  EXPECT_EQ(
      error([] {
        Device::expect_bulk(kAt, 0);
        Device::wait_bulk(kAt, 1, 1);
      }),
      who + "waits for bulk copies of a phase of parity 1, the next that it has not waited for is number 0");
}

TEST(Emulator, AWaitForBulkCopiesThatNobodyBeginsIsFound) {
  emulator::Emulator emulator;
  alignas(16) static constexpr std::byte kFrom[64] = {};
  const auto error = [&](std::uint32_t expected) {
    return error_of(emulator.run(grid_of_bulk_copies(3), [&] {
      if (Device::index(kX) == 0) Device::make_bulk_barrier(0);
      Device::sync(0);
      if (Device::index(kX) == 1) {
        if (expected != 0) Device::expect_bulk(0, expected);
        Device::copy_bulk(16, kFrom, 32, 0);
      }
      if (Device::index(kX) != 1) Device::wait_bulk(0, 0, 5);
    }));
  };
  EXPECT_EQ(error(32), "no error");
  for (const std::uint32_t expected : {0u, 16u, 48u})
    EXPECT_EQ(error(expected),
              "thread (0, 0, 0) of block (0, 0, 0) waits for bulk copies at instruction 5, of which fewer or "
              "more bytes are under way than are expected");
}

}  // namespace
}  // namespace forestvm::kernels::test_emulator
