// The device memory and queues of one thread's calls, kept from call to call: lanes, each with the memory and
// the queue of a pass that is under way. It also caches, per pass shape, the linked launches and the captured
// graph.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/calls.hpp>
#include <forestvm/result.hpp>

#include "kernels/backend/buffer.hpp"
#include "kernels/backend/runtime.hpp"
#include "kernels/link/link.hpp"

namespace forestvm::kernels {

/// Lanes of rows from the host, in turns.
inline constexpr unsigned kLanes = 2;

/// Bytes that a pass needs in a lane.
struct Room {
  std::size_t rows = 0, codes = 0, results = 0;
  std::size_t staged_rows = 0, staged_results = 0;  ///< of the host; rows as they came or their codes
  std::array<std::size_t, kAccumulators> accumulators{};
};

enum class RowSource : std::uint8_t { Host, HostCodes, Device };

/// The shape of a pass: the operations of passes of one shape differ in nothing but pointers.
struct PassShape {
  LinkRequest request;
  RowSource source = RowSource::Host;
  ResultType results = ResultType::Float32;  ///< as kernels write them

  bool operator==(const PassShape&) const = default;
};

/// The number of shapes that are kept: for a few batch sizes in turns, that of whole slabs and of the last.
inline constexpr std::size_t kKeptPasses = 8;

struct KeptPass {
  PassShape shape;
  LinkedCall linked;
  std::uint64_t first_call;  ///< that had the shape, by DeviceContext::calls
  std::uint64_t last_use;
};

/// A kept pass as a graph that uses a lane's memory.
struct CapturedPass {
  std::unique_ptr<Graph> graph;
  bool cannot_be_captured = false;
  const float* rows = nullptr;  ///< what its launches were given last
  std::size_t row_stride = 0;
  const void* results = nullptr;
};

/// Memory for one pass and the queue that it goes through.
class Lane {
 public:
  std::unique_ptr<Queue> queue;
  Buffer rows, codes, results, staged_rows, staged_results;
  std::array<Buffer, kAccumulators> accumulators;
  std::array<CapturedPass, kKeptPasses> captured;  ///< by DeviceContext::kept

  bool has(const Room& room) const;
  Result<void> reserve(const Runtime& runtime, const Room& room);
  /// Says where `count` numbers of staged_results go when the operations given to the queue are done.
  Result<void> deliver_to(const Destination& to, OutputKind output, std::size_t count);
  /// Waits for the pass, if there is one, and delivers its results.
  Result<void> finish();
  /// Waits for whatever was begun, also without a mark; nobody wants its results.
  void abandon() noexcept;
  /// Nothing is under way.
  void release_memory();

 private:
  /// Makes the buffer hold at least `bytes` bytes. A buffer that grows loses its content, and the graphs that
  /// use it; work under way, which may need it, is waited for.
  Result<void> grow(const Runtime& runtime, MemoryKind kind, Buffer& buffer, std::size_t bytes);

  Destination deliver_to_;
  OutputKind deliver_output_ = OutputKind::Raw;
  std::size_t deliver_count_ = 0;
};

class DeviceContext final : public Context {
 public:
  explicit DeviceContext(const std::shared_ptr<const Runtime>& of) : Context(of.get()), runtime(of) {}
  ~DeviceContext() override;
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  Result<void> release_memory();

  /// Where in `kept` passes of the shape are, linked by `link` if they were not.
  template <class Link>
  Result<std::size_t> keep(const PassShape& shape, Link link) {
    std::optional<std::size_t> place = find(shape);
    if (!place) {
      FVM_ASSIGN(LinkedCall linked, link());
      FVM_ASSIGN(place, make_place());
      kept[*place] = {shape, std::move(linked), calls, 0};
    }
    kept[*place].last_use = ++uses_;
    return *place;
  }

  const std::shared_ptr<const Runtime> runtime;  ///< of its memory, which may outlive the backend
  std::array<Lane, kLanes> lanes;                ///< of rows from the host
  Lane on_stream;                                ///< of rows on the device
  std::uint64_t stream_id = 0;                   ///< Runtime::stream_id of the stream that its queue uses
  std::uint32_t room_for = 0;  ///< rows of a pass that were not too many for the device's memory
  std::vector<KeptPass> kept;
  std::uint64_t calls = 0;

 private:
  std::optional<std::size_t> find(const PassShape& shape) const;
  /// In `kept`, for another: that of the pass whose last use is longest ago, if there are enough.
  Result<std::size_t> make_place();

  std::uint64_t uses_ = 0;
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
