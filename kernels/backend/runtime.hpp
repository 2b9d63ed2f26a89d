// The interface to a vendor's runtime: memory, copies, launches, and graphs of copies and launches, which are
// repeated by one call. CUDA, HIP and the emulator each implement it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <forestvm/result.hpp>

#include "kernels/link/launch.hpp"
#include "kernels/link/link.hpp"

namespace forestvm::kernels {

/// Takes operations, which a device does one after the other.
class Operations {
 public:
  virtual ~Operations() = default;

  virtual Result<void> upload(std::byte* to, const void* from, std::size_t bytes) = 0;
  virtual Result<void> download(void* to, const std::byte* from, std::size_t bytes) = 0;
  virtual Result<void> launch(const LinkedPhase& phase, const Launch& launch) = 0;
};

/// Operations that were captured, with the memory that they were captured for. A graph is used by one thread of the
/// host at a time, and must not be destroyed while one of its replays is under way.
class Graph {
 public:
  virtual ~Graph() = default;

  /// Sets the argument that the launch captured as number `number`, from 0 on, has in later replays; replays
  /// under way keep theirs.
  virtual Result<void> set_launch(std::size_t number, const Launch& launch) = 0;
};

/// A queue, which does operations later than it is given them: until wait() has returned, memory that is copied
/// from must not change, and memory that is written must not be read. It is used by one thread of the host at a
/// time.
class Queue : public Operations {
 public:
  /// Queues the operations of a graph, captured by the same runtime, once more.
  virtual Result<void> replay(Graph& graph) = 0;
  /// Lets wait() wait for the operations given so far. Does nothing while the queue's stream is captured.
  virtual Result<void> mark() = 0;
  /// Returns when all that was given before the last mark is done; its errors may show here.
  virtual Result<void> wait() = 0;
};

enum class MemoryKind {
  Device,
  Pinned,  ///< pinned memory of the host: copies from and to it run beside other work
};

/// The free bytes of a device's memory, and all of them.
struct DeviceMemory {
  std::size_t free, total;
};

/// A device. Every method may be called from many threads at once.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual std::string describe() const = 0;
  virtual int ordinal() const = 0;
  virtual const DeviceLimits& limits() const = 0;
  virtual Result<std::unique_ptr<Queue>> make_queue() const = 0;
  /// Returns a queue that gives its work to a stream of the caller's; null is the default stream.
  virtual Result<std::unique_ptr<Queue>> queue_on(void* stream) const = 0;
  /// Returns a number for a stream of the caller's. No other stream has it, not even one that was destroyed
  /// and had the same address. Returns nothing while the caller captures the stream for another graph: CUDA does not
  /// tell then. Operations are done when that graph is launched, and graphs cannot be replayed.
  virtual Result<std::optional<std::uint64_t>> stream_id(void* stream) const = 0;
  /// Captures the operations that `give` gives, without doing them. Fails with the error of `give`, or if they
  /// cannot be captured.
  virtual Result<std::unique_ptr<Graph>> capture(
      const std::function<Result<void>(Operations&)>& give) const = 0;
  virtual Result<DeviceMemory> memory() const = 0;
  /// Returns memory that is aligned to 64 bytes. Fails with an Environment error, which gives the numbers, if
  /// there is not enough.
  virtual Result<std::byte*> allocate(MemoryKind kind, std::size_t bytes) const = 0;
  /// Releases memory of allocate(). A GPU first finishes what it is doing.
  virtual void release(MemoryKind kind, std::byte* memory) const = 0;
};

}  // namespace forestvm::kernels
