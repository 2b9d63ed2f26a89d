// What a kernel sees of the GPU it runs on, one struct under one name: `Device`. Each vendor's header defines
// it; nothing else in kernels/ knows which one that is.
//
//   unsigned Device::index(unsigned dimension)    the calling thread's place in a dimension of the launch
//   unsigned Device::extent(unsigned dimension)   the launch's size in it; dimensions are those of
//   dimensions.def void Device::sync(std::uint32_t place)        barrier of the block's threads, all of which
//   must come to the
//                                                 same place
//   std::byte* Device::shared()                   the block's shared memory, aligned to 16 bytes
//   T Device::fetch_add(T& sum, T more)           atomic, for float, double and std::uint64_t
//
// Functions of the device are FVM_DEVICE, those better called than copied FVM_DEVICE_CALL; kernels, which the
// emulator has none of, FVM_KERNEL.
#pragma once

#if defined(__CUDACC__)
#include "kernels/vendor/cuda.hpp"
#elif defined(__HIPCC__)
#include "kernels/vendor/hip.hpp"
#else
#include "kernels/vendor/emulator.hpp"
#endif
