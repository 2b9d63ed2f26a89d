// The state of a GPU's thread: the range registers, and what thread_machine.hpp keeps from one instruction to the next.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/ranges.hpp>

#include "kernels/device/stage_trees.hpp"
#include "kernels/device/walk.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// The range registers. Verified code reads none of them before it sets it. Each is aligned, so that a range is loaded
/// and stored at once.
class Registers {
 public:
  FVM_DEVICE Range& operator[](std::uint32_t number) {
    return reinterpret_cast<Aligned*>(bytes_)[number].range;
  }

 private:
  struct alignas(16) Aligned {
    Range range;
  };
  alignas(Aligned) std::byte bytes_[kRangeRegisters * sizeof(Aligned)];
};

/// Returns the chunk of an iteration; an empty chunk if the iteration lies past the end of the range.
FVM_DEVICE Range chunk_of(const Range& over, std::uint32_t step, std::uint32_t iteration) {
  const std::uint32_t size = over.size();
  const std::uint64_t begin = std::uint64_t{iteration} * step;
  const std::uint32_t from = begin < size ? static_cast<std::uint32_t>(begin) : size;
  const std::uint32_t to = size - from > step ? from + step : size;
  return {over.begin + from, over.begin + to, iteration};
}

/// The thread's index in the block.
struct IndexInBlock {
  std::uint32_t x, y, z;

  FVM_DEVICE static IndexInBlock of_thread() {
    return {Device::index(kGridDimensions), Device::index(kGridDimensions + 1),
            Device::index(kGridDimensions + 2)};
  }
};

/// The thread's number among the threads that share work, and their number.
struct Peer {
  std::uint32_t number, count;

  FVM_DEVICE static Peer of(std::uint32_t word, const IndexInBlock& at) {
    const Sharing sharing = Sharing::of(word);
    return {sharing.x_step * at.x + sharing.y_step * at.y + sharing.z_step * at.z, sharing.count};
  }
};

/// A number of maps that no phase opens: a thread with so many stays idle.
inline constexpr std::uint32_t kIdleToTheEnd = kMaxPhaseCode + 1;

/// The state of a thread between instructions.
struct ThreadState {
  Registers ranges;
  std::uint32_t copies[kAccumulators] = {};  ///< number of the copy that the thread writes, by accumulator
  std::uint32_t idle = 0;  ///< number of open maps, from the first one in which the thread has no iteration
  Peer peer;
  std::uint32_t number;         ///< the thread's number in its block
  std::uint32_t block_row = 0;  ///< number of the block's first row
  std::byte* shared = Device::shared();
  bool unsettled = false;  ///< true if threads may have written or read since the last barrier
  StagedAs staged_as = StagedAs::Values;
  StagedRows staged_rows;  ///< Set whenever staged_rows_end is not 0; zeroes until then would take registers.
  std::uint32_t staged_rows_end = 0;

  // NOLINTNEXTLINE(clang-analyzer-optin.cplusplus.UninitializedObject): see staged_rows
  FVM_DEVICE explicit ThreadState(const Launch& launch)
      : peer(Peer::of(launch.peers, IndexInBlock::of_thread())), number(peer.number) {}
};

/// The state of a thread that interprets code. It lies in the thread's own memory, because ranges and copies are found
/// by their numbers.
struct InterpreterState : ThreadState {
  /// The state's address, for functions that are called: otherwise registers would hold it all the time.
  InterpreterState* self = this;
  StagedTrees staged_trees;

  FVM_DEVICE explicit InterpreterState(const Launch& launch) : ThreadState(launch) {}
};

}  // namespace forestvm::kernels
