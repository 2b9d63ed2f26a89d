// The SIMT emulator: runs a kernel, compiled for the host, for every thread of a launch. A thread is a fiber;
// it runs until it comes to a barrier or to its end, and the threads of a block take turns in an order drawn
// anew for each turn. In: the launch's size, a seed, the kernel. Out: what the kernel wrote, or an error that
// says which threads did not come to a barrier that others wait at.
//
// Shared memory begins with bytes that make every number absurd. It cannot show: races inside a turn that no
// order of whole turns shows, lockstep of warps, alignment, speed.
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

/// What the kernel sees of the thread that runs it.
struct Thread {
  std::array<std::uint32_t, 6> index;   ///< by LaunchDimension
  std::array<std::uint32_t, 6> extent;  ///< of the launch
  std::byte* shared;
};

const Thread& this_thread();

/// The calling thread waits until all threads of its block are at this place.
void sync(std::uint32_t place);

struct Grid {
  std::array<std::uint32_t, 6> extent;
  std::size_t shared_bytes = 0;  ///< of a block
  std::uint64_t seed = 0;        ///< of the orders
  /// For tests of tests: the place of barriers that threads pass by, as if they had been forgotten.
  std::uint32_t forgotten = UINT32_MAX;
};

/// Keeps the fibers' stacks from launch to launch. For one thread of the host at a time.
class Emulator {
 public:
  Emulator();
  ~Emulator();

  /// Internal error: the kernel broke the rules of barriers.
  Result<void> run(const Grid& grid, const std::function<void()>& kernel);

 private:
  class Stacks;
  std::unique_ptr<Stacks> stacks_;
};

}  // namespace forestvm::kernels::emulator
