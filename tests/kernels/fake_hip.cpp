// A runtime of HIP that has no devices and, as its error, its version's number. FVM_INCOMPLETE: one that
// lacks functions.
#include <cstdint>
#include <string_view>

namespace {

/// What a function of any kind gives back: 100, no device, or a text.
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
