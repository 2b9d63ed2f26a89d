// The emulator's kernels, for the vendor in fake_gpu.hpp.
#include "fake_gpu.hpp"

#include "kernels/emulator/kernel.hpp"
#include "kernels/link/cut_phases.hpp"
#include "kernels/vendor/emulator/grid.hpp"

namespace forestvm::kernels {

std::span<const CompiledKernel> compiled_kernels() {
  static constexpr CompiledKernel kKernels[] = {{Layout::Reorg, &FakeApi::kReorgKernel},
                                                {Layout::Array, &FakeApi::kArrayKernel},
                                                {Layout::Array4, &FakeApi::kCodesKernel}};
  return kKernels;
}

const void* kinds_kernel() { return &FakeApi::kKindsKernel; }

void FakeApi::run(const std::uint32_t* extent, const Launch& launch, std::size_t shared_bytes) {
  if (!calls().runs_kernels) return;
  emulator::Grid grid;
  std::copy(extent, extent + kDimensions, grid.extent.begin());
  grid.shared_bytes = shared_bytes;
  const auto kernel = is_of_kinds(launch.code[0].op) ? run_emulated_kind : run_emulated_phase;
  EXPECT_TRUE(emulator::Emulator().run(grid, [&] { kernel(launch); }).ok());
}

}  // namespace forestvm::kernels
