// The device memory and queues of one thread's calls, kept from call to call: pass states, each with the memory and
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

#include <forestvm/backend.hpp>
#include <forestvm/internal/calls.hpp>
#include <forestvm/result.hpp>

#include "kernels/backend/buffer.hpp"
#include "kernels/backend/device_calls.hpp"
#include "kernels/backend/runtime.hpp"
#include "kernels/link/link.hpp"

namespace forestvm::kernels {

/// Number of pass states for rows from the host: while a pass of one runs, the rows of the other are made ready.
inline constexpr unsigned kPassStates = 2;

/// Bytes that a pass needs in its state.
struct Room {
  std::size_t rows = 0, codes = 0, results = 0;
  /// Bytes of pinned memory of the host for rows, which are float32 values or rank codes, and for results.
  std::size_t staged_rows = 0, staged_results = 0;
  std::array<std::size_t, kAccumulators> accumulators{};
  std::size_t arrived = 0;    ///< bytes of LaunchPass::arrived
  std::size_t workspace = 0;  ///< bytes of LaunchPass::workspace
};

/// The form in which a pass's rows are copied to the device: float32 values, rank codes, or none if the rows are
/// there already.
enum class Upload : std::uint8_t { Values, Codes, None };

/// The shape of a pass: the operations of passes of one shape differ in nothing but pointers.
struct PassShape {
  LinkRequest request;
  OutputKind output = OutputKind::Raw;  ///< output of the call; see run_output()
  Upload upload = Upload::Values;
  ResultType results = ResultType::Float32;  ///< type of the results that kernels write
  LaunchOptions options;

  bool operator==(const PassShape&) const = default;
};

/// The number of shapes that are kept. It is enough for a caller that alternates between a few batch sizes: each
/// needs a shape for whole slabs and one for its last slab.
inline constexpr std::size_t kKeptPasses = 8;

struct KeptPass {
  PassShape shape;
  LinkedCall linked;
  std::uint64_t first_call;  ///< number of the first call that had the shape, by DeviceContext::calls
  std::uint64_t last_use;
};

/// A kept pass as a graph that uses the memory of its pass state.
struct CapturedPass {
  std::unique_ptr<Graph> graph;
  bool cannot_be_captured = false;
  const float* rows = nullptr;  ///< rows that its launches were given last
  std::size_t row_stride = 0;
  const void* results = nullptr;
};

/// Memory for one pass and the queue that it goes through.
class PassState {
 public:
  std::unique_ptr<Queue> queue;
  Buffer rows, codes, results, staged_rows, staged_results, arrived, workspace;
  std::array<Buffer, kAccumulators> accumulators;
  std::array<CapturedPass, kKeptPasses> captured;  ///< indexed as DeviceContext::kept

  bool has(const Room& room) const;
  Result<void> reserve(const Runtime& runtime, const Room& room);
  /// Says where `count` numbers of staged_results go when the operations given to the queue are done.
  Result<void> deliver_to(const Destination& to, OutputKind output, std::size_t count);
  /// Waits for the pass, if there is one, and delivers its results.
  Result<void> finish();
  /// Waits for everything that was begun, also without a mark, and drops its results and errors.
  void abandon() noexcept;
  /// Releases buffers and graphs. Nothing may be under way.
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

  /// Returns the index in `kept` of passes of the shape. Calls `link` to link them if they are not there.
  template <class Link>
  Result<std::size_t> keep(const PassShape& shape, Link link) {
    std::optional<std::size_t> index = find(shape);
    if (!index) {
      FVM_ASSIGN(LinkedCall linked, link());
      FVM_ASSIGN(index, free_index());
      kept[*index] = {shape, std::move(linked), calls, 0};
    }
    kept[*index].last_use = ++uses_;
    return *index;
  }

  const std::shared_ptr<const Runtime> runtime;  ///< owner of the memory: a context may outlive its backend
  std::array<PassState, kPassStates> states;     ///< for rows from the host
  PassState on_stream;                           ///< for rows on the device
  std::optional<std::uint64_t> stream_id;        ///< Runtime::stream_id of the stream that on_stream uses
  std::uint32_t room_for = 0;                    ///< rows of the largest pass for which there was memory
  std::array<KeptPass, kKeptPasses> kept{};      ///< kept_count of them
  std::size_t kept_count = 0;
  std::uint64_t calls = 0;

 private:
  std::optional<std::size_t> find(const PassShape& shape) const;
  /// Returns an index in `kept` for another shape. If all are taken, drops the shape whose last use is longest ago.
  Result<std::size_t> free_index();

  std::uint64_t uses_ = 0;
};

/// The pass states of a call. If the call ends by an error or an exception, waits until nothing is under way in them.
class StatesInUse {
 public:
  explicit StatesInUse(std::span<PassState> states) : states_(states) {}
  ~StatesInUse() {
    for (PassState& state : states_) state.abandon();
  }
  StatesInUse(const StatesInUse&) = delete;
  StatesInUse& operator=(const StatesInUse&) = delete;

  void end() { states_ = {}; }

 private:
  std::span<PassState> states_;
};

}  // namespace forestvm::kernels
