// The kernels of the vendor in fake_gpu.hpp.
#include "fake_gpu.hpp"

namespace forestvm::kernels {

std::span<const CompiledKernel> compiled_kernels() {
  static constexpr CompiledKernel kKernels[] = {{Layout::Reorg, &FakeApi::kReorgKernel},
                                                {Layout::Array, &FakeApi::kArrayKernel},
                                                {Layout::Array4, &FakeApi::kCodesKernel}};
  return kKernels;
}

}  // namespace forestvm::kernels
