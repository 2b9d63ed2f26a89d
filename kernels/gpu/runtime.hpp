// A GPU as a Runtime: streams, memory and launches, for CUDA and HIP alike. `Api` is the struct that calls the vendor's
// runtime: CudaApi or HipApi. Each error of the vendor's runtime becomes an Environment error that holds its text and
// what was being done.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend/runtime.hpp"
#include "kernels/gpu/graph.hpp"
#include "kernels/gpu/kernel_table.hpp"
#include "kernels/gpu/on_gpu.hpp"

namespace forestvm::kernels {

template <class Api>
Result<int> count_gpus() {
  const std::string none = std::string("no ") + Api::kName + " device";
  if (const Result<void> loaded = Api::load(); !loaded.ok())
    return fail(ErrorCode::Environment, none + ": " + loaded.error().text());
  int count = 0;
  const typename Api::Status status = Api::count_devices(&count);
  if (status != Api::kSuccess) {
    Api::clear_error();
    return fail(ErrorCode::Environment, none + ": " + Api::text(status));
  }
  if (count == 0) return fail(ErrorCode::Environment, none);
  return count;
}

template <class Api>
Result<bool> is_captured(int device, typename Api::Stream stream) {
  bool captured = false;
  FVM_TRY(OnGpu<Api>(device).call([&] { return Api::is_capturing(&captured, stream); },
                                  "asking whether the stream is captured"));
  return captured;
}

template <class Api>
class GpuQueue final : public Queue {
 public:
  /// Makes a queue on a stream. If `own` is true, the queue destroys the stream.
  GpuQueue(int device, typename Api::Stream stream, bool own) : device_(device), stream_(stream), own_(own) {}
  ~GpuQueue() override {
    const BesideCaptures<Api> here(device_);
    if (event_ != nullptr) static_cast<void>(Api::destroy_event(event_));
    if (own_) static_cast<void>(Api::destroy_stream(stream_));
  }
  GpuQueue(const GpuQueue&) = delete;
  GpuQueue& operator=(const GpuQueue&) = delete;

  Result<void> upload(std::byte* to, const void* from, std::size_t bytes) override {
    const OnGpu<Api> here(device_);
    return here.call([&] { return Api::upload(to, from, bytes, stream_); },
                     "copying " + std::to_string(bytes) + " bytes to the device");
  }

  Result<void> download(void* to, const std::byte* from, std::size_t bytes) override {
    const OnGpu<Api> here(device_);
    return here.call([&] { return Api::download(to, from, bytes, stream_); },
                     "copying " + std::to_string(bytes) + " bytes from the device");
  }

  Result<void> launch(const LinkedPhase& phase, const Launch& launch) override {
    const OnGpu<Api> here(device_);
    Launch argument = launch;
    void* arguments[] = {&argument};
    return here.call(
        [&] {
          return Api::launch(kernel_of(phase), phase.extent.data(), arguments, phase.shared_bytes, stream_);
        },
        launching(phase));
  }

  Result<void> replay(Graph& graph) override { return static_cast<GpuGraph<Api>&>(graph).replay(stream_); }

  Result<void> mark() override {
    FVM_ASSIGN(const bool captured, own_ ? Result<bool>(false) : is_captured<Api>(device_, stream_));
    if (captured) return {};
    if (event_ == nullptr)
      FVM_TRY(
          BesideCaptures<Api>(device_).call([&] { return Api::create_event(&event_); }, "creating an event"));
    FVM_TRY(OnGpu<Api>(device_).call([&] { return Api::record(event_, stream_); }, "recording an event"));
    marked_ = true;
    return {};
  }

  Result<void> wait() override {
    if (!std::exchange(marked_, false)) return {};
    const BesideCaptures<Api> here(device_);
    return here.call([&] { return Api::wait(event_); }, "waiting for the device");
  }

 private:
  int device_;
  typename Api::Stream stream_;
  bool own_;
  typename Api::Event event_ = nullptr;
  bool marked_ = false;
};

template <class Api>
class GpuRuntime final : public Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> open(int device) {
    FVM_ASSIGN(const int count, count_gpus<Api>());
    if (device < 0 || device >= count)
      return fail(ErrorCode::Environment,
                  std::string("no ") + Api::kName + " device " + std::to_string(device) + ": the " +
                      (count == 1 ? "only device is 0" : "devices are 0 to " + std::to_string(count - 1)));
    if (compiled_kernels().empty())
      return fail(ErrorCode::Environment,
                  std::string("this build of the ") + Api::kName + " library has no kernels");
    auto runtime = std::make_unique<GpuRuntime>(device);
    FVM_TRY(runtime->prepare());
    return std::unique_ptr<Runtime>(std::move(runtime));
  }

  static Result<std::vector<std::string>> devices() {
    FVM_ASSIGN(const int count, count_gpus<Api>());
    std::vector<std::string> descriptions;
    for (int device = 0; device < count; ++device) {
      FVM_ASSIGN(std::string description, description_of(device));
      descriptions.push_back(std::move(description));
    }
    return descriptions;
  }

  explicit GpuRuntime(int device) : device_(device) {}

  std::string describe() const override { return description_; }
  int ordinal() const override { return device_; }
  const DeviceLimits& limits() const override { return limits_; }

  Result<std::unique_ptr<Queue>> make_queue() const override {
    const BesideCaptures<Api> here(device_);
    typename Api::Stream stream{};
    FVM_TRY(here.call([&] { return Api::create_stream(&stream); }, "creating a stream"));
    return std::unique_ptr<Queue>(std::make_unique<GpuQueue<Api>>(device_, stream, true));
  }

  Result<std::unique_ptr<Queue>> queue_on(void* stream) const override {
    return std::unique_ptr<Queue>(
        std::make_unique<GpuQueue<Api>>(device_, static_cast<typename Api::Stream>(stream), false));
  }

  Result<std::optional<std::uint64_t>> stream_id(void* stream) const override {
    auto* const callers = static_cast<typename Api::Stream>(stream);
    FVM_ASSIGN(const bool captured, is_captured<Api>(device_, callers));
    if (captured) return std::optional<std::uint64_t>();
    std::uint64_t id = 0;
    FVM_TRY(BesideCaptures<Api>(device_).call([&] { return Api::stream_id(&id, callers); },
                                              "asking for the stream's number"));
    return std::optional(id);
  }

  Result<std::unique_ptr<Graph>> capture(
      const std::function<Result<void>(Operations&)>& give) const override {
    return GpuGraph<Api>::capture(device_, give);
  }

  Result<DeviceMemory> memory() const override {
    const BesideCaptures<Api> here(device_);
    DeviceMemory memory{};
    FVM_TRY(here.call([&] { return Api::memory(&memory.free, &memory.total); },
                      "asking for the device's memory"));
    return memory;
  }

  Result<std::byte*> allocate(MemoryKind kind, std::size_t bytes) const override {
    const BesideCaptures<Api> here(device_);
    void* taken = nullptr;
    const bool pinned = kind == MemoryKind::Pinned;
    FVM_TRY(here.is_chosen());
    const typename Api::Status status =
        pinned ? Api::allocate_pinned(&taken, bytes) : Api::allocate(&taken, bytes);
    if (status == Api::kOutOfMemory && !pinned) {
      Api::clear_error();
      FVM_ASSIGN(const DeviceMemory left, memory());
      return fail(ErrorCode::Environment,
                  "out of memory: " + std::to_string(bytes) + " bytes asked for, the device has " +
                      std::to_string(left.free) + " of " + std::to_string(left.total) + " free");
    }
    FVM_TRY(gpu_result<Api>(status, "allocating " + std::to_string(bytes) + " bytes of " +
                                        (pinned ? "pinned memory" : "the device's memory")));
    return static_cast<std::byte*>(taken);
  }

  void release(MemoryKind kind, std::byte* memory) const override {
    const BesideCaptures<Api> here(device_);
    static_cast<void>(kind == MemoryKind::Pinned ? Api::release_pinned(memory) : Api::release(memory));
  }

 private:
  /// Describes a device by calls that make no context on it, so that listing devices takes none of their
  /// memory.
  static Result<std::string> description_of(int device) {
    std::string text, driver;
    std::size_t bytes = 0;
    FVM_TRY(gpu_result<Api>(Api::describe(&text, &bytes, device), "asking for the device's name"));
    FVM_TRY(gpu_result<Api>(Api::driver(&driver), "asking for the driver's version"));
    return std::string(Api::kName) + " device " + std::to_string(device) + ": " + text + ", " +
           std::to_string(bytes >> 20) + " MiB, driver " + driver;
  }

  Result<void> prepare() {
    FVM_ASSIGN(description_, description_of(device_));
    FVM_ASSIGN(limits_.threads, attribute(Api::kThreads));
    FVM_ASSIGN(limits_.shared_bytes, attribute(Api::kSharedBytes));
    for (unsigned d = 0; d < kGridDimensions; ++d) {
      FVM_ASSIGN(limits_.grid[d], attribute(Api::kGrid[d]));
    }
    limits_.grid_threads = Api::kGridThreads;
    const BesideCaptures<Api> here(device_);
    std::uint32_t own_bytes = 0;
    for (const CompiledKernel& kernel : compiled_kernels()) {
      std::uint32_t threads = 0, bytes = 0;
      FVM_TRY(here.call([&] { return Api::kernel_limits(&threads, &bytes, kernel.function); },
                        "loading the kernels"));
      limits_.kernels.push_back({kernel.layout, threads});
      own_bytes = std::max(own_bytes, bytes);
    }
    limits_.shared_bytes -= std::min(limits_.shared_bytes, own_bytes);
    const auto allow = [&](const void* kernel) {
      return here.call(
          [&] { return Api::allow_shared_bytes(kernel, static_cast<int>(limits_.shared_bytes)); },
          "allowing kernels " + std::to_string(limits_.shared_bytes) + " bytes of shared memory");
    };
    for (const CompiledKernel& kernel : compiled_kernels()) FVM_TRY(allow(kernel.function));
    return allow(kinds_kernel());
  }

  template <class Attribute>
  Result<std::uint32_t> attribute(Attribute which) const {
    int value = 0;
    FVM_TRY(gpu_result<Api>(Api::attribute(&value, which, device_), "asking for the device's limits"));
    return static_cast<std::uint32_t>(value);
  }

  int device_;
  std::string description_;
  DeviceLimits limits_;
};

}  // namespace forestvm::kernels
