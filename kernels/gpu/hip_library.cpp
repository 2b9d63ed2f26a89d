// See hip_library.hpp. When this library is loaded, host code that the compiler made registers the kernels by calling
// functions of the runtime. This file defines these functions; they pass the kernels on to the runtime that was opened.
#include "kernels/gpu/hip_library.hpp"

#include <string>

#include "kernels/gpu/open_library.hpp"

namespace forestvm::kernels {
namespace {

// Checks the rows of hip_functions.def against the header's declarations.
#define FVM_HIP_FUNCTION(result, name, parameters) \
  static_assert(sizeof(static_cast<result(*) parameters>(&::name)) != 0);
#define FVM_HIP_REGISTRATION(result, name, parameters)
#include "kernels/gpu/hip_functions.def"

/// The names of the runtime in ROCm 7, 6 and 5, in the order in which they are tried.
constexpr const char* kLibraries[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};

template <class Function>
Result<void> find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return {};
  return fail(ErrorCode::Environment, dlerror());
}

Result<HipFunctions> found() {
  FVM_ASSIGN(void* const library, open_library(kLibraries));
  HipFunctions functions;
#define FVM_HIP_FUNCTION(result, name, parameters) FVM_TRY(find(library, #name, functions.name));
#define FVM_HIP_REGISTRATION(result, name, parameters) FVM_TRY(find(library, "__hip" #name, functions.name));
#include "kernels/gpu/hip_functions.def"
  static_cast<void>(find(library, "hipStreamGetId", functions.hipStreamGetId));
  return functions;
}

}  // namespace

const Result<HipFunctions>& load_hip() {
  static const Result<HipFunctions> kLoaded = found();
  return kLoaded;
}

}  // namespace forestvm::kernels

using forestvm::kernels::hip;
using forestvm::kernels::load_hip;

// NOLINTBEGIN(bugprone-reserved-identifier): compilers call functions of these names
extern "C" {

void** __hipRegisterFatBinary(const void* binary) {
  return load_hip().ok() ? hip().RegisterFatBinary(binary) : nullptr;
}

void __hipRegisterFunction(void** modules, const void* function, char* device_function,
                           const char* device_name, unsigned threads, void* thread, void* block,
                           void* block_size, void* grid_size, int* warp_size) {
  if (modules != nullptr)
    hip().RegisterFunction(modules, function, device_function, device_name, threads, thread, block,
                           block_size, grid_size, warp_size);
}

void __hipUnregisterFatBinary(void** modules) {
  if (modules != nullptr) hip().UnregisterFatBinary(modules);
}

// The compiler makes a stub for each kernel, which calls these two. Nothing calls a stub: launches only take
// its address, as the kernel's name.
hipError_t __hipPopCallConfiguration(dim3*, dim3*, std::size_t*, hipStream_t*) {
  return hipErrorNotSupported;
}

hipError_t hipLaunchKernel(const void*, dim3, dim3, void**, std::size_t, hipStream_t) {
  return hipErrorNotSupported;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
