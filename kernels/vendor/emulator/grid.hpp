// The SIMT emulator: runs a kernel, compiled for the host, for every thread of a launch. A thread is a fiber;
// it runs until it comes to a barrier, to a shuffle or to its end, and the threads of a block take turns in
// an order drawn anew for each turn. In: the launch's size, a seed, the kernel. Out: what the kernel wrote,
// or an error that names threads which broke a rule: of a block that did not come to the barrier at which
// others wait, of a warp that did not come to a shuffle, that read a lane which is not there, that copied to
// an address a GPU does not take, that wait for copies nobody begins, that load from an address which is not
// aligned.
//
// Shared memory begins with bytes that make every number absurd; so does what asynchronous copies go to, and
// they arrive when their thread, of bulk copies the first one, waits for them. It cannot show: races inside a
// turn that no order of whole turns shows, lockstep of warps, alignment of reads through pointers, speed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <forestvm/result.hpp>

namespace forestvm::kernels::emulator {

/// Bytes of memory that nothing has written: NaN as float, and far outside as a number.
inline constexpr int kPoison = 0xff;

/// Bytes of the largest value that a shuffle takes.
inline constexpr std::size_t kMostShuffled = 16;

/// What the kernel sees of the thread that runs it.
struct Thread {
  std::array<std::uint32_t, 6> index;   ///< by LaunchDimension
  std::array<std::uint32_t, 6> extent;  ///< of the launch
  std::byte* shared;
  unsigned warp;  ///< threads of one
  bool bulk_copies = false;
};

const Thread& this_thread();

// See kernels/vendor/device.hpp for what these do.
void sync(std::uint32_t barrier);
void shuffle_down(void* value, std::size_t bytes, unsigned by, std::uint32_t barrier);
void copy_async(std::byte* to, const std::byte* from, unsigned bytes);
void wait_copies();
void make_bulk_barrier(std::uint32_t barrier);
void expect_bulk(std::uint32_t barrier, std::uint32_t bytes);
void copy_bulk(std::uint32_t to, const std::byte* from, std::uint32_t bytes, std::uint32_t barrier);
void wait_bulk(std::uint32_t bulk_barrier, std::uint32_t parity, std::uint32_t barrier);

/// Ends the launch with an error: the current thread loads from an address that is not aligned.
void note_misaligned(std::size_t bytes, unsigned alignment);

/// Counts the atomic additions of all kernels that the calling host thread has run. Tests need the count:
/// threads take turns at barriers only, so that additions which are not atomic give the right sums too.
void count_atomic();
std::uint64_t atomics_counted();

struct Grid {
  std::array<std::uint32_t, 6> extent;
  std::size_t shared_bytes = 0;  ///< of a block
  std::uint64_t seed = 0;        ///< of the orders
  unsigned warp = 32;            ///< threads of one
  /// For tests of tests: the number of barriers that threads pass by, as if they had been forgotten.
  std::uint32_t forgotten = UINT32_MAX;
  bool bulk_copies = false;  ///< whether the GPU has them
};

/// Keeps the fibers' stacks from launch to launch. For one thread of the host at a time.
class Emulator {
 public:
  Emulator();
  ~Emulator();

  /// Internal error: the kernel broke a rule.
  Result<void> run(const Grid& grid, const std::function<void()>& kernel);

 private:
  class Stacks;
  std::unique_ptr<Stacks> stacks_;
};

}  // namespace forestvm::kernels::emulator
