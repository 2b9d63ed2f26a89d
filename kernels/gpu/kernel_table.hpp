// The kernels of a vendor's library, by layout.
#pragma once

#include <span>

#include <forestvm/core/forest_data.hpp>

namespace forestvm::kernels {

struct CompiledKernel {
  Layout layout;
  const void* function;  ///< address by which the vendor's runtime launches the kernel
};

std::span<const CompiledKernel> compiled_kernels();

}  // namespace forestvm::kernels
