// The SIMT emulator: runs a kernel, compiled for the host, for every thread of a launch. A thread is a fiber;
// it runs until it comes to a barrier, to a shuffle or to its end, and the threads of a block take turns in
// an order drawn anew for each turn. A few blocks at a time do so, too: their order is drawn, and whose turn it is.
// In: the launch's size, a seed, the kernel. Out: what the kernel wrote, or an error that names threads which broke
// a rule:
//
//   a thread of a block did not come to the barrier at which others wait;
//   a thread of a warp did not come to a shuffle, or read a lane that is not there;
//   a thread copied to an address that a GPU does not take, or waits for copies that nobody begins;
//   a thread loaded from an address that is not aligned.
//
// At first shared memory holds bytes that make every number absurd. The target of an asynchronous copy holds such
// bytes until the copy arrives: when the thread that began it waits for it, or, if it is a bulk copy, when the
// first thread does. The emulator cannot show races inside a turn that no order of whole turns shows, lockstep
// of warps, alignment of reads through pointers, and speed.
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
inline constexpr std::size_t kMaxShuffled = 16;

/// The thread that runs the kernel, as the kernel sees it.
struct Thread {
  std::array<std::uint32_t, 6> index;   ///< index of the thread in each dimension of dimensions.def
  std::array<std::uint32_t, 6> extent;  ///< size of the launch in each dimension
  std::byte* shared;                    ///< beginning of the block's shared memory
  unsigned warp;                        ///< number of threads of a warp
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
  std::size_t shared_bytes = 0;  ///< bytes of a block's shared memory
  std::uint64_t seed = 0;        ///< seed of the orders in which threads take turns
  unsigned warp = 32;            ///< number of threads of a warp
  /// Number of a barrier at which threads do not wait, as if it had been forgotten: tests that need the barrier
  /// must then fail.
  std::uint32_t forgotten = UINT32_MAX;
  bool bulk_copies = false;  ///< true if the GPU has bulk copies
};

/// Runs launches, and keeps the fibers' stacks from one to the next. Used by one thread of the host at a time.
class Emulator {
 public:
  Emulator();
  ~Emulator();

  /// Runs the kernel for every thread of the launch. Fails with an Internal error if it breaks a rule.
  Result<void> run(const Grid& grid, const std::function<void()>& kernel);

 private:
  class Stacks;
  std::unique_ptr<Stacks> stacks_;
};

}  // namespace forestvm::kernels::emulator
