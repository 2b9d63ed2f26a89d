// Stands in for HIP's runtime: it has no devices, and its error message is its version. With FVM_INCOMPLETE
// it lacks some functions.
#include <cstdint>
#include <string_view>

namespace {

/// Returns what a function of the runtime does: a text, or 100, which is hipErrorNoDevice.
const void* answer(std::string_view name) {
  if (name == "hipGetErrorString") return "this is runtime " FVM_VERSION;
  return reinterpret_cast<const void*>(std::uintptr_t{100});
}

}  // namespace

extern "C" {
#define FVM_HIP_FUNCTION(result, name, parameters) \
  const void* name() { return answer(#name); }
#ifdef FVM_INCOMPLETE
#define FVM_HIP_REGISTRATION(result, name, parameters)
#else
#define FVM_HIP_REGISTRATION(result, name, parameters) \
  const void* __hip##name() { return answer(#name); }
#endif
#include "kernels/gpu/hip_functions.def"
}
