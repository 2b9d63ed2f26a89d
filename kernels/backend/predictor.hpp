// Program + device -> Predictor: what all GPU backends are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <forestvm/backend.hpp>

#include "kernels/backend/runtime.hpp"

namespace forestvm::kernels {

/// How much of a call is on the device at once.
struct PassBounds {
  std::size_t slab_bytes = std::size_t{1} << 24;  ///< rows and results of a pass that are copied
  std::size_t pass_bytes = std::size_t{1} << 28;  ///< of a pass, on the device
  std::uint32_t fewest_rows = 256;                ///< of a pass for which memory is asked again
};

/// Puts the program on the device. `backend`: for people, in refusals.
Result<std::unique_ptr<Predictor>> make_predictor(const Program& program, std::unique_ptr<Runtime> runtime,
                                                  const std::string& backend, const PassBounds& bounds = {});

}  // namespace forestvm::kernels
