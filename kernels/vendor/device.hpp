// What a kernel sees of the GPU it runs on, one struct under one name: `Device`. Each vendor's header defines
// it; nothing else in kernels/ knows which one that is. A `barrier` numbers a point of the code
// where threads wait for each other: all that wait together pass the same number.
//
//   unsigned kMostThreads                   threads of a block, so that each has enough registers
//   const T& argument(const T&)             a kernel's only parameter, where it is
//   unsigned index(unsigned dimension)      the calling thread's place in a dimension of the launch
//   unsigned extent(unsigned dimension)     the launch's size in it; dimensions are those of dimensions.def
//   std::byte* shared()                     the block's shared memory, aligned to 16 bytes
//   std::uint32_t shared_address(const void*)
//                                           the address of a thing in shared memory, in bytes
//   T load_shared<T>(std::uint32_t address) loads 4, 8 or 16 bytes, aligned to their number, or
//                                           12 bytes, aligned to 4
//   T load_global(const T*)                 loads as many from global memory that the kernel does not write,
//                                           at once but for 12 bytes
//   const T* in_global(const T*)            returns the pointer, known to point to global memory
//   T kept(T)                               returns a number or pointer about which the compiler may assume
//                                           nothing: it is computed once, and not again at each use
//   std::uint32_t way(float x, float threshold, std::uint32_t word, std::uint32_t left, std::uint32_t right)
//                                           goes_left of a node's feature word, as one of two numbers
//   std::uint32_t child<mask, step>(std::uint32_t at, float x, float threshold, std::uint32_t word)
//                                           as many steps on as the word's bits of the mask say, which are 0
//                                           for leaves only; and one more for splits, unless goes_left
//   std::uint32_t sibling(std::uint32_t left, float x, float threshold, std::uint32_t word)
//                                           one more than left for splits, unless goes_left; left for leaves
//   void sync(std::uint32_t barrier)        barrier of all threads of the block
//   unsigned warp_size()                    threads of a warp; they are numbered in the block, x fastest, and
//                                           a block's last warp may have fewer
//   T shuffle_down(T value, unsigned by, std::uint32_t barrier)
//                                           the value of the thread `by` lanes on, which must be there: who
//                                           wants none reads its own, by 0. All threads of the warp come. T
//                                           is trivially copyable, of 4, 8 or 16 bytes
//   void copy_async(std::byte* to, const std::byte* from, unsigned bytes)
//                                           begins to copy 4, 8 or 16 bytes, aligned to as many, to shared
//                                           memory
//   void wait_copies()                      ends the calling thread's copies; others see them after a barrier
//   bool has_bulk_copies()                  whether the functions below exist, known when kernels are
//                                           compiled; their offsets count from the begin of shared memory
//   void make_bulk_barrier(std::uint32_t barrier)
//                                           8 bytes, aligned to as many: one thread makes it, and all come to
//                                           a barrier of the block before any uses it
//   void expect_bulk(std::uint32_t barrier, std::uint32_t bytes)
//                                           one thread says how many bytes come in the barrier's next phase,
//                                           before it begins to copy them. A barrier of the block separates
//                                           this from what threads read or wrote there before
//   void copy_bulk(std::uint32_t to, const std::byte* from, std::uint32_t bytes, std::uint32_t barrier)
//                                           begins to copy; all three aligned to 16
//   void wait_bulk(std::uint32_t bulk_barrier, std::uint32_t parity, std::uint32_t barrier)
//                                           waits until the calling thread sees the bytes of the phase;
//                                           phases have parity 0 and 1 in turns, and each thread waits for
//                                           each
//   T fetch_add(T& sum, T more)             atomic, for float, double and std::uint64_t; CUDA's float
//   addition
//                                           takes denormal numbers in global memory for zeros
//
// Functions of the device are FVM_DEVICE, those better called than copied FVM_DEVICE_CALL, or as members
// FVM_DEVICE_COLD; kernels, which the emulator has none of, FVM_KERNEL. FVM_UNROLL(times) and FVM_NO_UNROLL
// stand before loops.
#pragma once

#if defined(__CUDACC__)
#include "kernels/vendor/cuda.hpp"
#elif defined(__HIPCC__)
#include "kernels/vendor/hip.hpp"
#else
#include "kernels/vendor/emulator.hpp"
#endif
