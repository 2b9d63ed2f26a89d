// Device for CUDA, see device.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#define FVM_DEVICE __device__ inline
#define FVM_DEVICE_CALL __device__ __noinline__ static
#define FVM_KERNEL extern "C" __global__
#define FVM_KERNEL_ARGUMENT __grid_constant__

namespace forestvm::kernels {

extern __shared__ float4 shared_memory[];

struct Device {
  FVM_DEVICE static unsigned index(unsigned dimension) {
    const unsigned all[] = {blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z};
    return all[dimension];
  }
  FVM_DEVICE static unsigned extent(unsigned dimension) {
    const unsigned all[] = {gridDim.x, gridDim.y, gridDim.z, blockDim.x, blockDim.y, blockDim.z};
    return all[dimension];
  }
  FVM_DEVICE static void sync(std::uint32_t) { __syncthreads(); }
  FVM_DEVICE static std::byte* shared() { return reinterpret_cast<std::byte*>(shared_memory); }

  FVM_DEVICE static float fetch_add(float& sum, float more) { return atomicAdd(&sum, more); }
  FVM_DEVICE static double fetch_add(double& sum, double more) { return atomicAdd(&sum, more); }
  FVM_DEVICE static std::uint64_t fetch_add(std::uint64_t& sum, std::uint64_t more) {
    static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
    return atomicAdd(reinterpret_cast<unsigned long long*>(&sum), static_cast<unsigned long long>(more));
  }
};

}  // namespace forestvm::kernels
