// The interface of a vendor's library, libforestvm_cuda.so or libforestvm_hip.so, to the rest of forestvm: one C
// function, by which each side checks that the other is of the same build.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <forestvm/internal/formatted.hpp>
#include <forestvm/result.hpp>

#include "kernels/backend/runtime.hpp"

namespace forestvm::kernels {

/// The result of the library's function: how to reach the vendor's devices.
struct GpuPlugin {
  Result<std::vector<std::string>> (*devices)();         ///< Returns descriptions of the devices, by ordinal.
  Result<std::unique_ptr<Runtime>> (*open)(int device);  ///< Opens the device of this ordinal.
};

/// Returns a text that differs between builds of forestvm whose shared types differ, as far as their version and sizes
/// tell. Both sides use these types, so they must be of one build.
inline std::string plugin_interface() {
  return formatted(FORESTVM_VERSION ", launches of {}, phases of {} bytes, interface 3", sizeof(Launch),
                   sizeof(LinkedPhase));
}

/// The type of the library's function. It returns null to a caller with another plugin_interface(), and sets `own`
/// to the library's plugin_interface() in either case.
using GpuPluginEntry = const GpuPlugin*(const char* interface, const char** own);
inline constexpr const char* kGpuPluginEntry = "forestvm_gpu_plugin_1";

/// Implements the library's function.
inline const GpuPlugin* answer_plugin_entry(const GpuPlugin& plugin, const char* interface,
                                            const char** own) {
  static const std::string ours = plugin_interface();
  *own = ours.c_str();
  return ours == interface ? &plugin : nullptr;
}

}  // namespace forestvm::kernels
