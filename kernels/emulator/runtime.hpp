// The emulator as a device.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/runtime.hpp"

namespace forestvm::kernels {

struct EmulatorSettings {
  std::uint64_t seed = 1;                ///< of the first launch's orders, the next number of the next's
  unsigned warp = 32;                    ///< emulator::Grid::warp
  std::uint32_t forgotten = UINT32_MAX;  ///< emulator::Grid::forgotten
};

std::unique_ptr<Runtime> make_emulator_runtime(const EmulatorSettings& settings);

}  // namespace forestvm::kernels
