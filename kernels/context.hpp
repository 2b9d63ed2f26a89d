// What calls of one thread need on a device, kept from call to call: lanes, each with the memory and the
// queue of a pass that is under way.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include <forestvm/backend.hpp>
#include <forestvm/result.hpp>

#include "kernels/buffer.hpp"
#include "kernels/link.hpp"
#include "kernels/runtime.hpp"

namespace forestvm::kernels {

/// Lanes of rows from the host, in turns.
inline constexpr unsigned kLanes = 2;

/// Bytes that a pass needs in a lane.
struct Room {
  std::size_t rows = 0, codes = 0, results = 0;  ///< those of the host staged, too
  std::array<std::size_t, kAccumulators> accumulators{};
};

/// Memory for one pass and the queue that it goes through.
class Lane {
 public:
  std::unique_ptr<Queue> queue;
  Buffer rows, codes, results, staged_rows, staged_results;
  std::array<Buffer, kAccumulators> accumulators;

  Result<void> reserve(const Runtime& runtime, const Room& room);
  /// Of so many bytes in staged_results, when they are there.
  Result<void> deliver_to(void* to, std::size_t bytes);
  /// Waits for the pass, if there is one, and delivers its results.
  Result<void> finish();
  /// Waits for whatever was begun, also without a mark; nobody wants its results.
  void abandon() noexcept;
  /// Nothing is under way.
  void release_memory();

 private:
  /// At least so many bytes; what was there may be lost, and what is under way may need it.
  Result<void> grow(const Runtime& runtime, MemoryKind kind, Buffer& buffer, std::size_t bytes) const;

  void* deliver_to_ = nullptr;
  std::size_t deliver_bytes_ = 0;
};

class DeviceContext final : public Context {
 public:
  explicit DeviceContext(const std::shared_ptr<const Runtime>& of) : Context(of.get()), runtime(of) {}
  ~DeviceContext() override;
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  Result<void> release_memory();

  const std::shared_ptr<const Runtime> runtime;  ///< of its memory, which may outlive the backend
  std::array<Lane, kLanes> lanes;                ///< of rows from the host
  Lane on_stream;                                ///< of rows on the device
  void* stream = nullptr;                        ///< of its queue
  std::size_t room_for = 0;  ///< rows of a pass that were not too many for the device's memory
  std::optional<LinkRequest> linked_for;
  LinkedCall linked;
};

/// The lanes of a call. One that ends by an error or an exception leaves nothing under way in them.
class LanesInUse {
 public:
  explicit LanesInUse(std::span<Lane> lanes) : lanes_(lanes) {}
  ~LanesInUse() {
    for (Lane& lane : lanes_) lane.abandon();
  }
  LanesInUse(const LanesInUse&) = delete;
  LanesInUse& operator=(const LanesInUse&) = delete;

  void end() { lanes_ = {}; }

 private:
  std::span<Lane> lanes_;
};

}  // namespace forestvm::kernels
