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

/// Runs what it is given one after the other. Used by one thread of the host at a time.
class Queue {
 public:
  virtual ~Queue() = default;

  virtual Result<void> upload(std::byte* to, const void* from, std::size_t bytes) = 0;
  /// Returns when the bytes are there.
  virtual Result<void> download(void* to, const std::byte* from, std::size_t bytes) = 0;
  virtual Result<void> launch(const LinkedPhase& phase, const Launch& launch) = 0;
};

/// A device. Every method may be called from many threads at once.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual std::string describe() const = 0;
  virtual DeviceLimits limits() const = 0;
  virtual std::unique_ptr<Queue> make_queue() const = 0;
  /// Memory of the device, aligned to 64 bytes. Environment error, with the size, if there is not so much.
  virtual Result<std::byte*> allocate(std::size_t bytes) const = 0;
  virtual void release(std::byte* memory) const = 0;
};

}  // namespace forestvm::kernels
