// What a vendor's library, libforestvm_cuda.so or libforestvm_hip.so, shows the rest of forestvm: one C
// function, by which the two recognise each other.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <forestvm/result.hpp>

#include "kernels/backend/runtime.hpp"

namespace forestvm::kernels {

/// What the function gives: how to reach the vendor's devices.
struct GpuPlugin {
  Result<std::vector<std::string>> (*devices)();  ///< described, by their ordinals
  Result<std::unique_ptr<Runtime>> (*open)(int device);
};

/// Both sides must be of one build of forestvm, as far as can be told: they share types.
inline std::string plugin_interface() {
  return FORESTVM_VERSION ", launches of " + std::to_string(sizeof(Launch)) + ", phases of " +
         std::to_string(sizeof(LinkedPhase)) + " bytes, interface 2";
}

/// Null for a caller of another interface; `own` is set to the library's in either case.
using GpuPluginEntry = const GpuPlugin*(const char* interface, const char** own);
inline constexpr const char* kGpuPluginEntry = "forestvm_gpu_plugin_1";

/// What the library's function does.
inline const GpuPlugin* answer_plugin_entry(const GpuPlugin& plugin, const char* interface,
                                            const char** own) {
  static const std::string ours = plugin_interface();
  *own = ours.c_str();
  return ours == interface ? &plugin : nullptr;
}

}  // namespace forestvm::kernels
