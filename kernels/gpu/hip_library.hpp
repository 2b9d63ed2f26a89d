// HIP's runtime, libamdhip64.so, of any version. It is opened when it is needed instead of linked, because
// each major version of ROCm names it differently. The functions used here are the same in all of them.
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

  /// Null before ROCm 7.1, which does not have it.
  hipError_t (*hipStreamGetId)(hipStream_t, unsigned long long*) = nullptr;
};

/// Opens the runtime at the first call. Fails if there is none or if it lacks a function.
const Result<HipFunctions>& load_hip();

/// Returns the functions, after load_hip() has succeeded.
inline const HipFunctions& hip() { return *load_hip(); }

}  // namespace forestvm::kernels
