// Device for the emulator, see device.hpp: kernels compiled for the host, each GPU thread a fiber.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <forestvm/core/forest_data.hpp>

#include "kernels/vendor/emulator/grid.hpp"

#define FVM_DEVICE inline
#define FVM_DEVICE_COLD __attribute__((noinline))
#define FVM_UNROLL(times)
#define FVM_NO_UNROLL
#define FVM_DEVICE_CALL __attribute__((noinline)) inline

namespace forestvm::kernels {

struct Device {
  static constexpr unsigned kDeliveredTrees = 4;
  static constexpr bool kHandsOverCopies = true;
  static constexpr bool kCopiesAsync = true;

  static unsigned index(unsigned dimension) { return emulator::this_thread().index[dimension]; }
  static unsigned extent(unsigned dimension) { return emulator::this_thread().extent[dimension]; }
  static std::byte* shared() { return emulator::this_thread().shared; }
  template <class T>
  static T kept(T value) {
    return value;
  }
  static std::uint32_t kept_after(std::uint32_t number, float&) { return number; }
  static std::uint32_t branch(float x, float threshold, std::uint32_t word, std::uint32_t left,
                              std::uint32_t right) {
    return x < threshold || (x != x && (word & kMissingLeft) != 0) ? left : right;
  }
  template <std::uint32_t mask, std::uint32_t step>
  static std::uint32_t child(std::uint32_t at, float x, float threshold, std::uint32_t word) {
    const std::uint32_t steps = word & mask;
    return at + steps * step + (steps == 0 ? 0 : branch(x, threshold, word, 0, step));
  }
  static std::uint32_t sibling(std::uint32_t left, float x, float threshold, std::uint32_t word) {
    return (word & kLeaf) != 0 ? left : branch(x, threshold, word, left, left + 1);
  }
  static std::uint32_t below(std::uint32_t at, std::uint32_t left, std::uint32_t more, float x,
                             float threshold, std::uint32_t word) {
    return 2 * at + left + branch(x, threshold, word, 0, more);
  }
  static std::uint32_t below(std::uint32_t at, std::uint32_t left, std::uint32_t more, std::uint32_t code,
                             std::uint32_t word) {
    return 2 * at + left + (code > word ? more : 0);
  }
  static std::uint32_t shared_address(const void* pointer) {
    return static_cast<std::uint32_t>(static_cast<const std::byte*>(pointer) - shared());
  }
  template <class T>
  static T load_shared(std::uint32_t address) {
    return load<T>(shared() + address, address);
  }
  template <class T>
  static T load_global(const T* pointer) {
    return load<T>(pointer, reinterpret_cast<std::uintptr_t>(pointer));
  }
  template <class T>
  static const T* in_global(const T* pointer) {
    return pointer;
  }

  static void sync(std::uint32_t barrier) { emulator::sync(barrier); }

  static unsigned warp_size() { return emulator::this_thread().warp; }

  template <class T>
  static T shuffle_down(T value, unsigned by, std::uint32_t barrier) {
    static_assert(std::is_trivially_copyable_v<T> &&
                  (sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == emulator::kMaxShuffled));
    emulator::shuffle_down(&value, sizeof value, by, barrier);
    return value;
  }

  static void copy_async(std::byte* to, const std::byte* from, unsigned bytes) {
    emulator::copy_async(to, from, bytes);
  }
  static void wait_copies() { emulator::wait_copies(); }

  static bool has_bulk_copies() { return emulator::this_thread().bulk_copies; }
  static void make_bulk_barrier(std::uint32_t barrier) { emulator::make_bulk_barrier(barrier); }
  static void expect_bulk(std::uint32_t barrier, std::uint32_t bytes) {
    emulator::expect_bulk(barrier, bytes);
  }
  static void copy_bulk(std::uint32_t to, const std::byte* from, std::uint32_t bytes, std::uint32_t barrier) {
    emulator::copy_bulk(to, from, bytes, barrier);
  }
  static void wait_bulk(std::uint32_t bulk_barrier, std::uint32_t parity, std::uint32_t barrier) {
    emulator::wait_bulk(bulk_barrier, parity, barrier);
  }

  /// Does nothing: what a thread has written is seen by all others.
  static void fence() {}

  /// Adds by plain instructions: threads take turns at barriers only, so that no other thread can come between.
  template <class T>
  static T fetch_add(T& sum, T more) {
    emulator::count_atomic();
    const T before = sum;
    sum += more;
    return before;
  }

 private:
  /// Loads a value. Notes an address that is not aligned, at which a GPU would stop.
  template <class T>
  static T load(const void* from, std::uintptr_t address) {
    constexpr unsigned kAlignment = sizeof(T) == 12 ? 4 : sizeof(T);
    if (address % kAlignment != 0) emulator::note_misaligned(sizeof(T), kAlignment);
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
};

}  // namespace forestvm::kernels
