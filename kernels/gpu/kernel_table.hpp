// The kernels of a vendor's library, by layout.
#pragma once

#include <span>

#include <forestvm/core/forest_data.hpp>

namespace forestvm::kernels {

struct CompiledKernel {
  Layout layout;
  const void* function;  ///< Address by which the vendor's runtime launches the kernel.
};

/// Returns the kernels of this library, one for each layout that has one.
std::span<const CompiledKernel> compiled_kernels();

/// Returns the address of the kernel of kinds.
const void* kinds_kernel();

}  // namespace forestvm::kernels
