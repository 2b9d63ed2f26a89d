// The kernels of a vendor's library: one for each row of layout_kernels.def, compiled from megakernel.cu.in, and the
// kernel of kinds.
#include "kernels/gpu/kernel_table.hpp"

#include <vector>

#include "kernels/link/launch.hpp"

extern "C" {
#define FVM_LAYOUT_KERNEL(layout, ...) void forestvm_phase_##layout(forestvm::kernels::Launch launch);
#include "kernels/link/layout_kernels.def"
void forestvm_phase_Kinds(forestvm::kernels::Launch launch);
}

namespace forestvm::kernels {

std::span<const CompiledKernel> compiled_kernels() {
  static const std::vector<CompiledKernel> kKernels = {
#define FVM_LAYOUT_KERNEL(layout, ...) \
  {Layout::layout, reinterpret_cast<const void*>(&forestvm_phase_##layout)},
#include "kernels/link/layout_kernels.def"
  };
  return kKernels;
}

const void* kinds_kernel() { return reinterpret_cast<const void*>(&forestvm_phase_Kinds); }

}  // namespace forestvm::kernels
