// Program + device -> Predictor, for every GPU backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <forestvm/backend.hpp>
#include <forestvm/internal/gpu_costs.hpp>

#include "kernels/backend/runtime.hpp"

namespace forestvm::kernels {

/// Bounds on the part of a call that is on the device at once.
struct PassBounds {
  std::size_t slab_bytes = std::size_t{1} << 24;   ///< most bytes of rows and results that a pass copies
  std::size_t pass_bytes = gpu_costs::kPassBytes;  ///< most bytes of the device's memory that a pass takes
  /// Number of rows below which a pass is not cut, however little of the device's memory is free.
  std::uint32_t fewest_rows = 256;
};

/// Puts the program on the device. `backend` is the name by which messages call it.
Result<std::unique_ptr<Predictor>> make_predictor(const Program& program, std::unique_ptr<Runtime> runtime,
                                                  const std::string& backend, const PassBounds& bounds = {});

}  // namespace forestvm::kernels
