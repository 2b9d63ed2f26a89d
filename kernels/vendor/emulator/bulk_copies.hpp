// Bulk copies of a block, and the barriers at which they arrive: one thread begins copies, and every thread
// waits for them. In: the requests of threads. Out: the copied bytes, or a text that says which rule a request
// broke. From the begin of a copy until the first thread waits for its phase, the copy's target holds poison.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/vendor/emulator/grid.hpp"

namespace forestvm::kernels::emulator {

class BulkCopies {
 public:
  /// A text that says which rule a request broke; empty if it broke none.
  using Fault = std::string;

  BulkCopies(std::span<std::byte> shared, std::size_t threads) : shared_(shared), threads_(threads) {}

  Fault make_barrier(std::uint32_t at) {
    if (at % kBarrierBytes != 0)
      return "makes a barrier of bulk copies that is not aligned to " + std::to_string(kBarrierBytes) +
             " bytes";
    if (!inside(at, kBarrierBytes)) return "makes a barrier of bulk copies outside the block's shared memory";
    if (barriers_.contains(at)) return "makes a barrier of bulk copies a second time";
    barriers_[at].waits.resize(threads_);
    std::memcpy(shared_.data() + at, kMark.data(), kBarrierBytes);
    return {};
  }

  Fault expect(std::uint32_t at, std::uint32_t bytes) {
    if (!is_barrier(at)) return kNoBarrier;
    Barrier& barrier = barriers_[at];
    if (barrier.expects) return "expects bulk copies where others are under way";
    if (bytes > kMaxExpected)
      return "expects " + std::to_string(bytes) + " bytes of bulk copies: a phase counts at most " +
             std::to_string(kMaxExpected);
    barrier.expects = true;
    barrier.expected = bytes;
    return {};
  }

  Fault copy(std::uint32_t to, const std::byte* from, std::uint32_t bytes, std::uint32_t at) {
    if (!is_barrier(at)) return kNoBarrier;
    if ((to | bytes | reinterpret_cast<std::uintptr_t>(from)) % kAlignment != 0)
      return "copies in bulk what is not aligned to " + std::to_string(kAlignment) + " bytes";
    if (bytes == 0) return "copies nothing in bulk";
    if (!inside(to, bytes)) return "copies in bulk to an address outside the block's shared memory";
    Barrier& barrier = barriers_[at];
    barrier.copies.push_back({to, from, bytes});
    barrier.begun += bytes;
    std::memset(shared_.data() + to, kPoison, bytes);
    return {};
  }

  /// Lets a thread wait for its next phase. `thread` is its number in the block.
  Fault begin_wait(std::uint32_t at, std::uint32_t parity, std::size_t thread) {
    if (!is_barrier(at)) return kNoBarrier;
    const std::uint32_t phase = barriers_[at].waits[thread]++;
    if (phase % 2 != parity)
      return "waits for bulk copies of a phase of parity " + std::to_string(parity) +
             ", the next that it has not waited for is number " + std::to_string(phase);
    return {};
  }

  /// Returns true if the phase that the thread waits for is over. A phase whose bytes are all on their way ends
  /// here: its copies are made.
  bool arrived(std::uint32_t at, std::size_t thread) {
    Barrier& barrier = barriers_[at];
    if (barrier.phases_over == barrier.waits[thread]) return true;
    if (!barrier.expects || barrier.begun != barrier.expected) return false;
    for (const Copy& copy : barrier.copies) std::memcpy(shared_.data() + copy.to, copy.from, copy.bytes);
    barrier.copies.clear();
    barrier.begun = 0;
    barrier.expects = false;
    ++barrier.phases_over;
    return true;
  }

 private:
  static constexpr std::uint32_t kBarrierBytes = 8, kAlignment = 16, kMaxExpected = (1u << 20) - 1;
  static constexpr const char* kNoBarrier = "uses a barrier of bulk copies where none is, or is no longer";
  /// The content of a barrier's memory, which shows whether a thread has written over it.
  static constexpr std::array<std::uint8_t, kBarrierBytes> kMark = {'b', 'a', 'r', 'r', 'i', 'e', 'r', 's'};

  struct Copy {
    std::uint32_t to;
    const std::byte* from;
    std::uint32_t bytes;
  };
  struct Barrier {
    bool expects = false;
    /// Bytes that the phase expects, and bytes whose copies have begun.
    std::uint64_t expected = 0, begun = 0;
    std::vector<Copy> copies;
    std::uint32_t phases_over = 0;
    std::vector<std::uint32_t> waits;  ///< number of phases that each thread has waited for or waits for
  };

  bool inside(std::size_t at, std::size_t bytes) const { return at + bytes <= shared_.size(); }
  bool is_barrier(std::uint32_t at) const {
    return barriers_.contains(at) && std::memcmp(shared_.data() + at, kMark.data(), kBarrierBytes) == 0;
  }

  std::span<std::byte> shared_;
  std::size_t threads_;
  std::map<std::uint32_t, Barrier> barriers_;
};

}  // namespace forestvm::kernels::emulator
