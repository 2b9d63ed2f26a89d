// The emulator's kernels, for the vendor in fake_gpu.hpp.
#include "fake_gpu.hpp"

#include "kernels/emulator/kernel.hpp"
#include "kernels/vendor/emulator/grid.hpp"

namespace forestvm::kernels {

std::span<const CompiledKernel> compiled_kernels() {
  static constexpr CompiledKernel kKernels[] = {{Layout::Reorg, &FakeApi::kReorgKernel},
                                                {Layout::Array, &FakeApi::kArrayKernel},
                                                {Layout::Array4, &FakeApi::kCodesKernel}};
  return kKernels;
}

void FakeApi::run(const std::uint32_t* extent, const Launch& launch, std::size_t shared_bytes) {
  if (!calls().runs_kernels) return;
  emulator::Grid grid;
  std::copy(extent, extent + kDimensions, grid.extent.begin());
  grid.shared_bytes = shared_bytes;
  EXPECT_TRUE(emulator::Emulator().run(grid, [&] { run_emulated_phase(launch); }).ok());
}

}  // namespace forestvm::kernels
