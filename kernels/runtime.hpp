// What the predictor needs of a vendor's runtime: memory, copies, launches. CUDA, HIP and the emulator each
// implement it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <forestvm/result.hpp>

#include "kernels/launch.hpp"
#include "kernels/link.hpp"

namespace forestvm::kernels {

/// Does what it is given one after the other, later: memory that is copied from stays as it is, and memory
/// that is written is not read, until wait() has returned. Used by one thread of the host at a time.
class Queue {
 public:
  virtual ~Queue() = default;

  virtual Result<void> upload(std::byte* to, const void* from, std::size_t bytes) = 0;
  virtual Result<void> download(void* to, const std::byte* from, std::size_t bytes) = 0;
  virtual Result<void> launch(const LinkedPhase& phase, const Launch& launch) = 0;
  /// What was given before is what wait() waits for.
  virtual Result<void> mark() = 0;
  /// Returns when all that was given before the last mark is done; its errors may show here.
  virtual Result<void> wait() = 0;
};

enum class MemoryKind {
  Device,
  Pinned,  ///< the host's, from and to which copies run beside other work
};

/// Bytes of a device.
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
  /// A queue that gives its work to a stream of the caller's, null: the default one.
  virtual Result<std::unique_ptr<Queue>> queue_on(void* stream) const = 0;
  virtual Result<DeviceMemory> memory() const = 0;
  /// Aligned to 64 bytes. Environment error, with the numbers, if there is not so much.
  virtual Result<std::byte*> allocate(MemoryKind kind, std::size_t bytes) const = 0;
  /// Waits for what the device is doing.
  virtual void release(MemoryKind kind, std::byte* memory) const = 0;
};

}  // namespace forestvm::kernels
