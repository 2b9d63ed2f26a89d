// Implements the GPU backends of forestvm/backend.hpp in a build without them (CMake's FORESTVM_GPU=OFF): each call
// fails.
#include <memory>
#include <string>
#include <vector>

#include <forestvm/backend.hpp>

#include "kernels/gpu/vendor_libraries.hpp"

namespace forestvm {
namespace {

Failure not_built(GpuVendor vendor) {
  return kernels::absent(
      kernels::library_of(vendor),
      "forestvm was built without support for GPUs (CMake's FORESTVM_GPU=OFF); build it with FORESTVM_GPU=ON");
}

}  // namespace

Result<std::unique_ptr<Predictor>> gpu_backend(const Program&, const GpuOptions& options) {
  return not_built(options.vendor);
}

Result<std::vector<std::string>> gpu_devices(GpuVendor vendor) { return not_built(vendor); }

}  // namespace forestvm
