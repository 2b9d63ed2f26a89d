// What a kernel sees of the GPU it runs on, one struct under one name: `Device`. Each vendor's header defines
// it; nothing else in kernels/ knows which one that is. A `place` tells a call from others: all who have to
// come together come to the same one.
//
//   unsigned index(unsigned dimension)      the calling thread's place in a dimension of the launch
//   unsigned extent(unsigned dimension)     the launch's size in it; dimensions are those of dimensions.def
//   std::byte* shared()                     the block's shared memory, aligned to 16 bytes
//   void sync(std::uint32_t place)          barrier of all threads of the block
//   bool any(bool vote, place)              the same, and whether any thread voted so
//   unsigned warp_size()                    threads of a warp; they are numbered in the block, x fastest, and
//                                           a block's last warp may have fewer
//   T shuffle_down(T value, unsigned by, place)
//                                           the value of the thread `by` lanes on, which must be there: who
//                                           wants none reads its own, by 0. All threads of the warp come. T
//                                           is trivially copyable, of 4, 8 or 16 bytes
//   void copy_async(std::byte* to, const std::byte* from, unsigned bytes)
//                                           begins to copy 4, 8 or 16 bytes, aligned to as many, to shared
//                                           memory
//   void wait_copies()                      ends the calling thread's copies; others see them after a barrier
//   T fetch_add(T& sum, T more)             atomic, for float, double and std::uint64_t
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
