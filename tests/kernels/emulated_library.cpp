// A vendor's library whose device is the emulator, so that loading such libraries and everything built on
// them is tested without a GPU.
#include "kernels/emulator/runtime.hpp"
#include "kernels/gpu/plugin.hpp"

namespace {

using namespace forestvm;

Result<std::vector<std::string>> devices() { return std::vector<std::string>{"an emulated device"}; }

Result<std::unique_ptr<kernels::Runtime>> open(int device) {
  if (device != 0) return fail(ErrorCode::Environment, "no emulated device " + std::to_string(device));
  return kernels::make_emulator_runtime({});
}

constexpr kernels::GpuPlugin kPlugin = {&devices, &open};

}  // namespace

extern "C" __attribute__((visibility("default"))) const kernels::GpuPlugin* forestvm_gpu_plugin_1(
    const char* interface, const char** own) {
  return kernels::answer_plugin_entry(kPlugin, interface, own);
}
