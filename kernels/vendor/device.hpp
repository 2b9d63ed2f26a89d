// The GPU that a kernel runs on, as the kernel sees it: a struct named `Device`. Each vendor's header defines one,
// and nothing else in kernels/ knows which of them it uses. A `barrier` is the number of a point of the code where
// threads wait for each other: all that wait together pass the same number.
//
//   unsigned kMaxThreads                   most threads of a block for which there are enough registers
//   unsigned kDeliveredTrees               most trees with nodes of 8 bytes that a thread walks in lockstep if their
//                                           leaves are not simply added, because more would take too many registers
//   bool kHandsOverCopies                   true if there are enough registers for handing over walks as copies
//   bool kCopiesAsync                       true if a thread goes on while copy_async() copies
//   const T& argument(const T&)             a kernel's only parameter, read in place and not copied
//   unsigned index(unsigned dimension)      the calling thread's index in a dimension of the launch
//   unsigned extent(unsigned dimension)     the launch's size in a dimension of dimensions.def
//   std::byte* shared()                     the block's shared memory, aligned to 16 bytes
//   std::uint32_t shared_address(const void*)
//                                           the address of a thing in shared memory, in bytes
//   T load_shared<T>(std::uint32_t address) loads 1, 4, 8 or 16 bytes, aligned to their number, or
//                                           12 bytes, aligned to 4
//   T load_global(const T*)                 loads 4, 8, 12 or 16 bytes from global memory that the kernel does
//                                           not write: 12 bytes by several instructions, others by one
//   const T* in_global(const T*)            returns the pointer, known to point to global memory
//   T kept(T)                               returns a number or pointer about which the compiler may assume
//                                           nothing: it is computed once, and not again at each use
//   std::uint32_t kept_after(std::uint32_t number, float& before)
//                                           as kept, and nothing is computed from the result until `before` is known:
//                                           otherwise comparisons with it would hold predicates for long
//   std::uint32_t branch(float x, float threshold, std::uint32_t word, std::uint32_t left, std::uint32_t right)
//                                           left if goes_left is true for the node's feature word, else right
//   std::uint32_t child<mask, step>(std::uint32_t at, float x, float threshold, std::uint32_t word)
//                                           at + step * n, where n is the word's bits in the mask, which are 0
//                                           for leaves only; for splits plus one more step, unless goes_left
//   std::uint32_t sibling(std::uint32_t left, float x, float threshold, std::uint32_t word)
//                                           left + 1 for splits, unless goes_left; otherwise left
//   std::uint32_t below(std::uint32_t at, std::uint32_t left, std::uint32_t more, float x, float threshold,
//                       std::uint32_t word)
//                                           2 * at + left, and `more` more, unless goes_left
//   std::uint32_t below(std::uint32_t at, std::uint32_t left, std::uint32_t more, std::uint32_t code,
//                       std::uint32_t word)
//                                           2 * at + left, and `more` more if the code is above the word
//   void sync(std::uint32_t barrier)        barrier of all threads of the block
//   unsigned warp_size()                    the number of threads of a warp. Threads are numbered in the block, x
//                                           fastest, and a block's last warp may have fewer
//   T shuffle_down(T value, unsigned by, std::uint32_t barrier)
//                                           the value of the thread `by` lanes further, which must exist: a
//                                           thread that needs none passes 0 and gets its own. All threads of
//                                           the warp must call it. T is trivially copyable, of 4, 8 or 16 bytes
//   void copy_async(std::byte* to, const std::byte* from, unsigned bytes)
//                                           begins to copy 4, 8 or 16 bytes, aligned to their number, to
//                                           shared memory
//   void wait_copies()                      ends the calling thread's copies; others see them after a barrier
//   bool has_bulk_copies()                  true if the functions below can be used, which is known when kernels
//                                           are compiled; they take offsets from the beginning of shared memory
//   void make_bulk_barrier(std::uint32_t barrier)
//                                           makes a barrier of 8 bytes, aligned to 8. One thread calls it, and
//                                           all come to a barrier of the block before any of them uses it
//   void expect_bulk(std::uint32_t barrier, std::uint32_t bytes)
//                                           says how many bytes come in the barrier's next phase. One thread
//                                           calls it, before it begins to copy them. A barrier of the block
//                                           separates this from what threads read or wrote there before
//   void copy_bulk(std::uint32_t to, const std::byte* from, std::uint32_t bytes, std::uint32_t barrier)
//                                           begins to copy; `to`, `from` and `bytes` are multiples of 16
//   void wait_bulk(std::uint32_t bulk_barrier, std::uint32_t parity, std::uint32_t barrier)
//                                           waits until the calling thread sees the bytes of the phase;
//                                           phases have parity 0 and 1 in turns, and every thread waits for
//                                           every phase
//   void fence()                            what the thread and, before a barrier of the block, the block's others have
//                                           written is seen by threads of other blocks that see what the calling thread
//                                           adds atomically later, and that call this after they have seen it
//   T fetch_add(T& sum, T more)             adds atomically, for float, double and unsigned integers; CUDA's
//                                           addition of float takes denormal numbers in global memory for zeros
//
// Functions of the device are marked FVM_DEVICE. Those that are better called than inlined are marked
// FVM_DEVICE_CALL, or FVM_DEVICE_COLD if they are members. Kernels, of which the emulator has none, are marked
// FVM_KERNEL(most threads of a block). FVM_UNROLL(times) and FVM_NO_UNROLL stand before loops.
#pragma once

#if defined(__CUDACC__)
#include "kernels/vendor/cuda.hpp"
#elif defined(__HIPCC__)
#include "kernels/vendor/hip.hpp"
#else
#include "kernels/vendor/emulator.hpp"
#endif
