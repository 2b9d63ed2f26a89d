// Kernels with one mistake each, and the same kernels without it: whatever the order of threads and the size
// of warps, the correct kernel gives the right answer in the emulator, and each wrong one gives another
// answer or an error.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/vendor/device.hpp"
#include "kernels/vendor/emulator/grid.hpp"

namespace forestvm::kernels::test_mutants {
namespace {

constexpr unsigned kX = 3;  // block.x
constexpr std::uint32_t kThreads = 100, kRows = 5, kStride = 8, kSums = 4;

/// The mistake in a kernel.
enum class Mutation {
  None,
  // mistakes in add_tiles
  NoWait,
  NoBarrierAfterCopies,
  NoBarrierBeforeCopies,
  WrongRow,
  WrongStride,
  CopiesTooLittle,
  // mistakes in add_tiles_ahead
  BeginsBeforeTheBarrier,
  OneBuffer,
  WrongBuffer,
  // mistakes in add_tiles_ahead with bulk copies
  NoBarrierAfterMaking,
  ExpectsNothing,
  ExpectsTooLittle,
  WrongParity,
  // mistakes in add_atomically
  NoZeroing,
  NoBarrierAfterZeroing,
  // mistakes in add_by_warps
  DivergentShuffle,
  ShuffleBeyondTheWarp,
  HalfOfTheShuffles,
  NoBarrierBeforeTheLastSum,
};

class Mutants : public testing::Test {
 protected:
  Mutants() : values_(kTiles * kThreads * kRows) { std::iota(values_.begin(), values_.end(), 1.0f); }

  /// Returns the numbers that a kernel leaves in memory as text, or the emulator's error.
  template <class Kernel>
  std::string outcome(const Kernel& kernel, std::uint64_t seed, unsigned warp) {
    out_.assign(kThreads, 0.0f);
    const auto done = emulator_.run({{1, 1, 1, kThreads, 1, 1}, kSharedBytes, seed, warp}, kernel);
    if (!done.ok()) return done.error().text();
    std::string text;
    for (const float x : out_) text += std::to_string(x) + " ";
    return text;
  }

  /// Checks that the correct kernel always gives the same result, and the wrong one another result under
  /// every order or, if `sometimes`, under some orders.
  template <class Kernel>
  void check(const Kernel& kernel, Mutation mutation, bool sometimes = false) {
    for (const unsigned warp : {32u, 64u}) {
      unsigned found = 0;
      const std::string right = outcome([&] { kernel(Mutation::None); }, 0, warp);
      EXPECT_EQ(right.find("nan"), std::string::npos) << right;
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        EXPECT_EQ(outcome([&] { kernel(Mutation::None); }, seed, warp), right);
        found += outcome([&] { kernel(mutation); }, seed, warp) != right;
      }
      if (sometimes)
        EXPECT_GT(found, 0u) << "warps of " << warp;
      else
        EXPECT_EQ(found, kSeeds) << "warps of " << warp;
    }
  }

  static float* shared() { return reinterpret_cast<float*>(Device::shared()); }

  /// Copies tiles of rows to shared memory one after the other, column by column. Each thread adds the value
  /// of its right neighbour.
  void add_tiles(Mutation wrong) {
    const unsigned i = Device::index(kX), beside = (i + 1) % kThreads;
    const unsigned stride = wrong == Mutation::WrongStride ? kStride + 1 : kStride;
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      if (wrong != Mutation::NoBarrierBeforeCopies) Device::sync(0);
      const unsigned rows = wrong == Mutation::CopiesTooLittle ? kRows - 1 : kRows;
      for (unsigned row = 0; row < rows; ++row)
        Device::copy_async(
            reinterpret_cast<std::byte*>(shared() + i * kStride + row),
            reinterpret_cast<const std::byte*>(values_.data() + (tile * kThreads + i) * kRows + row), 4);
      if (wrong != Mutation::NoWait) Device::wait_copies();
      if (wrong != Mutation::NoBarrierAfterCopies) Device::sync(1);
      for (unsigned row = 0; row < kRows; ++row)
        out_[i] += shared()[beside * stride + (wrong == Mutation::WrongRow ? row + 1 : row)];
    }
  }

  static constexpr std::uint32_t kTileBytes = kThreads * kRows * sizeof(float);

  /// Begins to copy a tile to one of two buffers. The barriers of bulk copies are stored behind the buffers.
  void begin_tile(Mutation wrong, bool bulk, std::uint32_t tile) {
    const std::uint32_t i = Device::index(kX), buffer = wrong == Mutation::OneBuffer ? 0 : tile % 2;
    const auto* const from = reinterpret_cast<const std::byte*>(values_.data()) + tile * kTileBytes;
    if (!bulk) {
      for (std::uint32_t at = i * kRows * 4; at < (i + 1) * kRows * 4; at += 4)
        Device::copy_async(Device::shared() + buffer * kTileBytes + at, from + at, 4);
    } else if (i == 0) {
      const std::uint32_t barrier = 2 * kTileBytes + tile % 2 * 8;
      if (wrong != Mutation::ExpectsNothing)
        Device::expect_bulk(barrier, kTileBytes - (wrong == Mutation::ExpectsTooLittle ? 16 : 0));
      Device::copy_bulk(buffer * kTileBytes, from, kTileBytes, barrier);
    }
  }

  /// Adds tiles as add_tiles does, but copies each tile while the one before it is added.
  void add_tiles_ahead(Mutation wrong, bool bulk) {
    const unsigned i = Device::index(kX), beside = (i + 1) % kThreads;
    if (bulk) {
      if (i == 0)
        for (std::uint32_t buffer = 0; buffer < 2; ++buffer)
          Device::make_bulk_barrier(2 * kTileBytes + buffer * 8);
      if (wrong != Mutation::NoBarrierAfterMaking) Device::sync(0);
    }
    begin_tile(wrong, bulk, 0);
    for (std::uint32_t tile = 0; tile < kTiles; ++tile) {
      const bool early = wrong == Mutation::BeginsBeforeTheBarrier, more = tile + 1 < kTiles;
      if (wrong != Mutation::NoWait) {
        Device::wait_copies();
        const std::uint32_t parity = (tile / 2 + (wrong == Mutation::WrongParity ? 1 : 0)) % 2;
        if (bulk) Device::wait_bulk(2 * kTileBytes + tile % 2 * 8, parity, 1);
      }
      if (more && early) begin_tile(wrong, bulk, tile + 1);
      if (wrong != Mutation::NoBarrierAfterCopies) Device::sync(2);
      if (more && !early) begin_tile(wrong, bulk, tile + 1);
      const std::uint32_t buffer = (tile + (wrong == Mutation::WrongBuffer ? 1 : 0)) % 2;
      for (std::uint32_t row = 0; row < kRows; ++row)
        out_[i] += shared()[buffer * kThreads * kRows + beside * kRows + row];
    }
  }

  /// Makes threads add to a few sums in shared memory.
  void add_atomically(Mutation wrong) {
    const unsigned i = Device::index(kX);
    if (wrong != Mutation::NoZeroing && i < kSums) shared()[i] = 0;
    if (wrong != Mutation::NoBarrierAfterZeroing) Device::sync(0);
    Device::fetch_add(shared()[(i + 1) % kSums], values_[i]);
    Device::sync(1);
    out_[i] = shared()[i % kSums];
  }

  /// Adds all threads' values: each warp adds its own, then one thread adds the warps' sums.
  void add_by_warps(Mutation wrong) {
    const unsigned i = Device::index(kX), size = Device::warp_size(), warp = i / size, lane = i % size;
    const unsigned lanes =
        wrong == Mutation::ShuffleBeyondTheWarp ? size : std::min(size, kThreads - warp * size);
    float sum = values_[i];
    for (unsigned by = size / 2; by != 0; by /= 2) {
      if (wrong == Mutation::HalfOfTheShuffles && by == 1) continue;
      const bool there = lane + by < lanes;
      if (wrong == Mutation::DivergentShuffle && !there) continue;
      const float more = Device::shuffle_down(sum, there ? by : 0, by);
      if (there) sum += more;
    }
    if (lane == 0) shared()[warp] = sum;
    if (wrong != Mutation::NoBarrierBeforeTheLastSum) Device::sync(0);
    if (i != 0) return;
    for (unsigned w = 0; w * size < kThreads; ++w) out_[0] += shared()[w];
  }

  static constexpr unsigned kTiles = 3;
  static constexpr std::uint64_t kSeeds = 20;
  static constexpr std::size_t kSharedBytes = 2 * kTileBytes + 2 * 8;
  static_assert(kSharedBytes >= (kThreads * (kStride + 1) + 1) * sizeof(float));
  emulator::Emulator emulator_;
  std::vector<float> values_, out_;
};

TEST_F(Mutants, OfCopiedTiles) {
  const auto kernel = [this](Mutation wrong) { add_tiles(wrong); };
  for (const Mutation wrong :
       {Mutation::NoWait, Mutation::NoBarrierAfterCopies, Mutation::NoBarrierBeforeCopies, Mutation::WrongRow,
        Mutation::WrongStride, Mutation::CopiesTooLittle}) {
    SCOPED_TRACE(static_cast<int>(wrong));
    check(kernel, wrong);
  }
}

TEST_F(Mutants, OfTilesCopiedAhead) {
  for (const bool bulk : {false, true}) {
    const auto kernel = [this, bulk](Mutation wrong) { add_tiles_ahead(wrong, bulk); };
    for (const Mutation wrong :
         {Mutation::NoWait, Mutation::NoBarrierAfterCopies, Mutation::OneBuffer, Mutation::WrongBuffer}) {
      SCOPED_TRACE(static_cast<int>(wrong));
      check(kernel, wrong);
    }
    // Threads that come first are not affected, so that only some orders show the mistake.
    check(kernel, Mutation::BeginsBeforeTheBarrier, true);
  }
}

TEST_F(Mutants, OfBulkCopies) {
  const auto kernel = [this](Mutation wrong) { add_tiles_ahead(wrong, true); };
  for (const Mutation wrong : {Mutation::ExpectsNothing, Mutation::ExpectsTooLittle, Mutation::WrongParity}) {
    SCOPED_TRACE(static_cast<int>(wrong));
    check(kernel, wrong);
  }
  check(kernel, Mutation::NoBarrierAfterMaking, true);  // the thread that makes them may come first
}

TEST_F(Mutants, OfAtomicSums) {
  const auto kernel = [this](Mutation wrong) { add_atomically(wrong); };
  check(kernel, Mutation::NoZeroing);
  check(kernel, Mutation::NoBarrierAfterZeroing);
}

TEST_F(Mutants, OfShuffledSums) {
  const auto kernel = [this](Mutation wrong) { add_by_warps(wrong); };
  check(kernel, Mutation::DivergentShuffle);
  check(kernel, Mutation::ShuffleBeyondTheWarp);
  check(kernel, Mutation::HalfOfTheShuffles);
  check(kernel, Mutation::NoBarrierBeforeTheLastSum, true);  // the last warp may come first
}

}  // namespace
}  // namespace forestvm::kernels::test_mutants
