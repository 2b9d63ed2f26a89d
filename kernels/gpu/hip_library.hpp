// HIP's runtime, libamdhip64.so, of whichever version is there. It is not linked: each major version of ROCm
// has another name for it, and what is called here is the same in all of them.
#pragma once

#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include <forestvm/result.hpp>

namespace forestvm::kernels {

struct HipFunctions {
#define FVM_HIP_FUNCTION(result, name, parameters) result(*name) parameters = nullptr;
#define FVM_HIP_REGISTRATION FVM_HIP_FUNCTION
#include "kernels/gpu/hip_functions.def"

  /// Null in versions before 7.1.
  hipError_t (*hipStreamGetId)(hipStream_t, unsigned long long*) = nullptr;
};

/// Error: there is no library, or it lacks a function.
const Result<HipFunctions>& load_hip();

/// Of the library, which load_hip() has found.
inline const HipFunctions& hip() { return *load_hip(); }

}  // namespace forestvm::kernels
