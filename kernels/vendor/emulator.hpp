// Device for the emulator, see device.hpp: kernels compiled for the host, each GPU thread a fiber.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/emulator/grid.hpp"

#define FVM_DEVICE inline
#define FVM_DEVICE_CALL __attribute__((noinline)) inline

namespace forestvm::kernels {

struct Device {
  static unsigned index(unsigned dimension) { return emulator::this_thread().index[dimension]; }
  static unsigned extent(unsigned dimension) { return emulator::this_thread().extent[dimension]; }
  static void sync(std::uint32_t place) { emulator::sync(place); }
  static std::byte* shared() { return emulator::this_thread().shared; }

  /// Threads take turns at barriers only, so that nothing comes between.
  template <class T>
  static T fetch_add(T& sum, T more) {
    const T before = sum;
    sum += more;
    return before;
  }
};

}  // namespace forestvm::kernels
