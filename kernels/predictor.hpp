// Program + device -> Predictor: what all GPU backends are.
#pragma once

#include <memory>

#include <forestvm/backend.hpp>

#include "kernels/runtime.hpp"

namespace forestvm::kernels {

/// Puts the program on the device. `backend`: for people, in refusals.
Result<std::unique_ptr<Predictor>> make_predictor(const Program& program, std::unique_ptr<Runtime> runtime,
                                                  const std::string& backend);

}  // namespace forestvm::kernels
