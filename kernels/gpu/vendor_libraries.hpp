// The library of each vendor of GPUs, and the error where there is none.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <forestvm/backend.hpp>
#include <forestvm/internal/formatted.hpp>

namespace forestvm::kernels {

/// The names of a vendor's runtime, such as "CUDA", and of the file of its library.
struct VendorLibrary {
  const char* vendor;
  const char* file;
};

inline const VendorLibrary& library_of(GpuVendor vendor) {
  static constexpr std::array<VendorLibrary, 2> kLibraries = {
      {{"CUDA", "libforestvm_cuda.so"}, {"HIP", "libforestvm_hip.so"}}};
  return kLibraries[static_cast<std::size_t>(vendor)];
}

/// Returns the error that the vendor's backend cannot be used because of `why`.
inline Error absent(const VendorLibrary& library, const std::string& why) {
  return fail(ErrorCode::Environment, formatted("no {} backend: {}", library.vendor, why));
}

}  // namespace forestvm::kernels
