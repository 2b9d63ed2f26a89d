// libforestvm_hip.so: HIP devices.
#include "kernels/gpu/hip_api.hpp"
#include "kernels/gpu/plugin.hpp"
#include "kernels/gpu/runtime.hpp"

extern "C" __attribute__((visibility("default"))) const forestvm::kernels::GpuPlugin* forestvm_gpu_plugin_1(
    const char* interface, const char** own) {
  using Gpu = forestvm::kernels::GpuRuntime<forestvm::kernels::HipApi>;
  static constexpr forestvm::kernels::GpuPlugin kPlugin = {&Gpu::devices, &Gpu::open};
  return forestvm::kernels::answer_plugin_entry(kPlugin, interface, own);
}
