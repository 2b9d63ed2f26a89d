// The emulator as a device. stream.hpp has its streams; its default stream does everything at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/backend/runtime.hpp"

namespace forestvm::kernels {

struct EmulatorSettings {
  std::uint64_t seed = 1;  ///< emulator::Grid::seed of a queue's first launch, plus 1 for each later
  unsigned warp = 32;      ///< emulator::Grid::warp
  std::uint32_t forgotten = UINT32_MAX;  ///< emulator::Grid::forgotten
  bool bulk_copies = false;              ///< emulator::Grid::bulk_copies
  std::size_t memory_bytes = SIZE_MAX;   ///< bytes of the device's memory
  DeviceLimits limits{};
};

std::unique_ptr<Runtime> make_emulator_runtime(const EmulatorSettings& settings);

}  // namespace forestvm::kernels
