// The kernels that emulated GPUs run.
#pragma once

#include "kernels/link/launch.hpp"

namespace forestvm::kernels {

/// Runs the calling thread of a launch, for trees of any layout. It takes long to compile, and so is compiled once.
void run_emulated_phase(const Launch& launch);

/// Runs the calling thread of a launch of the kernel of kinds.
void run_emulated_kind(const Launch& launch);

}  // namespace forestvm::kernels
