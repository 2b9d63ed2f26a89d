// See runtime.hpp; forestvm/internal/emulator.hpp declares the backend. The device's memory is the host's, and its
// kernel is the megakernel for all layouts.
#include "kernels/emulator/runtime.hpp"

#include <atomic>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/internal/emulator.hpp>
#include <forestvm/internal/formatted.hpp>

#include "kernels/backend/predictor.hpp"
#include "kernels/emulator/kernel.hpp"
#include "kernels/emulator/stream.hpp"
#include "kernels/vendor/emulator/grid.hpp"

namespace forestvm {
namespace kernels {
namespace {

constexpr std::size_t kAlignment = 64;

/// Holds operations with the arguments that they were captured with, and gives them to queues.
class EmulatorGraph final : public Graph {
 public:
  Result<void> set_launch(std::size_t number, const Launch& launch) override {
    *launches_[number] = launch;
    return {};
  }

  Result<void> give_to(Operations& to) const {
    for (const auto& operation : operations_) FVM_TRY(operation(to));
    return {};
  }

 private:
  friend class EmulatorCapture;
  std::vector<std::function<Result<void>(Operations&)>> operations_;
  std::vector<std::shared_ptr<Launch>> launches_;  ///< arguments of the launches, in their order
};

class EmulatorCapture final : public Operations {
 public:
  explicit EmulatorCapture(EmulatorGraph& graph) : graph_(&graph) {}

  Result<void> upload(std::byte* to, const void* from, std::size_t bytes) override {
    graph_->operations_.emplace_back([=](Operations& queue) { return queue.upload(to, from, bytes); });
    return {};
  }
  Result<void> download(void* to, const std::byte* from, std::size_t bytes) override {
    graph_->operations_.emplace_back([=](Operations& queue) { return queue.download(to, from, bytes); });
    return {};
  }
  Result<void> launch(const LinkedPhase& phase, const Launch& launch) override {
    auto argument = std::make_shared<Launch>(launch);
    graph_->launches_.push_back(argument);
    graph_->operations_.emplace_back(
        [phase, argument](Operations& queue) { return queue.launch(phase, *argument); });
    return {};
  }

 private:
  EmulatorGraph* graph_;
};

/// A queue that gives its work to a stream, or does it at once if it has none.
class EmulatorQueue final : public Queue {
 public:
  EmulatorQueue(EmulatorSettings settings, emulator::Stream* stream)
      : stream_(stream), settings_(std::move(settings)) {}
  EmulatorQueue(EmulatorSettings settings, std::unique_ptr<emulator::Stream> own)
      : EmulatorQueue(std::move(settings), own.get()) {
    own_ = std::move(own);
  }

  Result<void> upload(std::byte* to, const void* from, std::size_t bytes) override {
    return copy(to, from, bytes);
  }
  Result<void> download(void* to, const std::byte* from, std::size_t bytes) override {
    return copy(to, from, bytes);
  }

  Result<void> launch(const LinkedPhase& phase, const Launch& launch) override {
    const emulator::Grid grid{phase.extent,   phase.shared_bytes,  settings_.seed++,
                              settings_.warp, settings_.forgotten, settings_.bulk_copies};
    const auto kernel = phase.of_kinds ? run_emulated_kind : run_emulated_phase;
    return add([emulator = emulator_, grid, kernel, launch] {
      return emulator->run(grid, [kernel, &launch] { kernel(launch); });
    });
  }

  Result<void> replay(Graph& graph) override { return static_cast<EmulatorGraph&>(graph).give_to(*this); }

  Result<void> mark() override {
    if (stream_ != nullptr) marked_ = stream_->added();
    return {};
  }
  Result<void> wait() override { return stream_ == nullptr ? Result<void>() : stream_->wait_for(marked_); }

 private:
  Result<void> copy(void* to, const void* from, std::size_t bytes) {
    return add([to, from, bytes]() -> Result<void> {
      if (bytes != 0) std::memcpy(to, from, bytes);
      return {};
    });
  }

  Result<void> add(emulator::Stream::Work work) {
    if (stream_ == nullptr) return work();
    stream_->add(std::move(work));
    return {};
  }

  std::shared_ptr<emulator::Emulator> emulator_ = std::make_shared<emulator::Emulator>();
  std::unique_ptr<emulator::Stream> own_;
  emulator::Stream* stream_;
  std::uint64_t marked_ = 0;
  EmulatorSettings settings_;
};

/// The emulator as a device of limited memory. Right before each piece of memory it notes how many bytes the
/// piece takes of that limit.
class EmulatorRuntime final : public Runtime {
 public:
  explicit EmulatorRuntime(EmulatorSettings settings) : settings_(std::move(settings)) {}

  std::string describe() const override {
    return formatted("emulator of a GPU, warps of {} threads, orders from seed {}", settings_.warp,
                     settings_.seed);
  }
  int ordinal() const override { return 0; }
  const DeviceLimits& limits() const override { return settings_.limits; }
  Result<std::unique_ptr<Queue>> make_queue() const override {
    return std::unique_ptr<Queue>(
        std::make_unique<EmulatorQueue>(settings_, std::make_unique<emulator::Stream>()));
  }
  Result<std::unique_ptr<Queue>> queue_on(void* stream) const override {
    return std::unique_ptr<Queue>(
        std::make_unique<EmulatorQueue>(settings_, static_cast<emulator::Stream*>(stream)));
  }
  Result<std::optional<std::uint64_t>> stream_id(void* stream) const override {
    if (stream == nullptr) return std::optional<std::uint64_t>(0);
    const auto& callers = *static_cast<const emulator::Stream*>(stream);
    return callers.is_captured() ? std::nullopt : std::optional(callers.id());
  }
  Result<std::unique_ptr<Graph>> capture(
      const std::function<Result<void>(Operations&)>& give) const override {
    auto graph = std::make_unique<EmulatorGraph>();
    EmulatorCapture capture(*graph);
    FVM_TRY(give(capture));
    return std::unique_ptr<Graph>(std::move(graph));
  }
  Result<DeviceMemory> memory() const override {
    return DeviceMemory{settings_.memory_bytes - taken_, settings_.memory_bytes};
  }

  Result<std::byte*> allocate(MemoryKind kind, std::size_t bytes) const override {
    const std::size_t device_bytes = kind == MemoryKind::Device ? bytes : 0;
    if (taken_.fetch_add(device_bytes) + device_bytes > settings_.memory_bytes) {
      taken_ -= device_bytes;
      return out_of_memory(bytes);
    }
    void* const memory = ::operator new (bytes + kAlignment, std::align_val_t{kAlignment}, std::nothrow);
    if (memory == nullptr) {
      taken_ -= device_bytes;
      return out_of_memory(bytes);
    }
    std::memcpy(memory, &device_bytes, sizeof device_bytes);
    auto* const begin = static_cast<std::byte*>(memory) + kAlignment;
    std::memset(begin, emulator::kPoison, bytes);
    return begin;
  }

  void release(MemoryKind, std::byte* memory) const override {
    std::size_t device_bytes;
    std::memcpy(&device_bytes, memory - kAlignment, sizeof device_bytes);
    taken_ -= device_bytes;
    ::operator delete (memory - kAlignment, std::align_val_t{kAlignment});
  }

 private:
  Error out_of_memory(std::size_t bytes) const {
    return fail(ErrorCode::Environment,
                formatted("out of memory: {} bytes asked for, the device has {} of {} free", bytes,
                          settings_.memory_bytes - taken_, settings_.memory_bytes));
  }

  EmulatorSettings settings_;
  mutable std::atomic<std::size_t> taken_ = 0;  ///< bytes of the device's memory that are taken
};

}  // namespace

std::unique_ptr<Runtime> make_emulator_runtime(const EmulatorSettings& settings) {
  return std::make_unique<EmulatorRuntime>(settings);
}

}  // namespace kernels

Result<std::unique_ptr<Predictor>> emulator_backend(const Program& program, const EmulatorOptions& options) {
  if (options.warp != 32 && options.warp != 64)
    return usage("warps of {} threads: GPUs have 32 or 64", options.warp);
  // Both ways of copying are emulated, one for odd seeds and one for even ones.
  return kernels::make_predictor(
      program,
      kernels::make_emulator_runtime(
          {.seed = options.seed, .warp = options.warp, .bulk_copies = options.seed % 2 != 0}),
      "the emulator");
}

}  // namespace forestvm
