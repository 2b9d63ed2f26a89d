// Compiles the kernel that emulated GPUs run.
#include "kernels/emulator/kernel.hpp"

#include "kernels/device/megakernel.hpp"

namespace forestvm::kernels {

void run_emulated_phase(const Launch& launch) { run_phase<AllLayouts>(launch); }

}  // namespace forestvm::kernels
