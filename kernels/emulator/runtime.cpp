// See runtime.hpp, and forestvm/backend.hpp for the backend. Its memory is the host's, its kernel the
// megakernel of all layouts.
#include "kernels/emulator/runtime.hpp"

#include <cstring>
#include <new>
#include <string>

#include <forestvm/backend.hpp>

#include "kernels/emulator/grid.hpp"
#include "kernels/megakernel.hpp"
#include "kernels/predictor.hpp"

namespace forestvm {
namespace kernels {
namespace {

constexpr std::align_val_t kAlignment{64};

class EmulatorQueue final : public Queue {
 public:
  explicit EmulatorQueue(const EmulatorSettings& settings) : settings_(settings) {}

  Result<void> upload(std::byte* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }

  Result<void> download(void* to, const std::byte* from, std::size_t bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
    return {};
  }

  Result<void> launch(const LinkedPhase& phase, const Launch& launch) override {
    return emulator_.run(
        {phase.extent, phase.shared_bytes, settings_.seed++, settings_.warp, settings_.forgotten},
        [&launch] { run_phase<AllLayouts>(launch); });
  }

 private:
  emulator::Emulator emulator_;
  EmulatorSettings settings_;
};

class EmulatorRuntime final : public Runtime {
 public:
  explicit EmulatorRuntime(const EmulatorSettings& settings) : settings_(settings) {}

  std::string describe() const override {
    return "emulator of a GPU, warps of " + std::to_string(settings_.warp) + " threads, orders from seed " +
           std::to_string(settings_.seed);
  }
  DeviceLimits limits() const override { return {}; }
  std::unique_ptr<Queue> make_queue() const override { return std::make_unique<EmulatorQueue>(settings_); }

  Result<std::byte*> allocate(std::size_t bytes) const override {
    void* const memory = ::operator new(bytes, kAlignment, std::nothrow);
    if (memory == nullptr)
      return Error{ErrorCode::Environment, "", "out of memory: " + std::to_string(bytes) + " bytes"};
    std::memset(memory, emulator::kPoison, bytes);
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory) const override { ::operator delete(memory, kAlignment); }

 private:
  EmulatorSettings settings_;
};

}  // namespace

std::unique_ptr<Runtime> make_emulator_runtime(const EmulatorSettings& settings) {
  return std::make_unique<EmulatorRuntime>(settings);
}

}  // namespace kernels

Result<std::unique_ptr<Predictor>> emulator_backend(const Program& program, const EmulatorOptions& options) {
  if (options.warp != 32 && options.warp != 64)
    return Error{ErrorCode::Usage, "",
                 "warps of " + std::to_string(options.warp) + " threads: GPUs have 32 or 64"};
  return kernels::make_predictor(
      program, kernels::make_emulator_runtime({.seed = options.seed, .warp = options.warp}), "the emulator");
}

}  // namespace forestvm
