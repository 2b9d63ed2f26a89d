// Compiles the kernels that emulated GPUs run.
#include "kernels/emulator/kernel.hpp"

#include "kernels/device/kinds_kernel.hpp"
#include "kernels/device/megakernel.hpp"

namespace forestvm::kernels {

void run_emulated_phase(const Launch& launch) { run_phase<AllLayouts>(launch); }

void run_emulated_kind(const Launch& launch) { run_kind(launch); }

}  // namespace forestvm::kernels
