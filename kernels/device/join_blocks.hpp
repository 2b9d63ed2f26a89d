// Blocks that share the trees of rows hand over what they have made: the last one to come goes on.
#pragma once

#include <cstdint>

#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// Returns true in the block that comes last, of those of the same grid.x. It sees what the others have written.
/// `offset` is that of a word in shared memory, `thread` the thread's number in its block, and `barrier` the number of
/// the barriers.
FVM_DEVICE bool joins_last(const Launch& launch, std::uint32_t offset, std::uint32_t thread,
                           std::uint32_t barrier) {
  auto* const last = reinterpret_cast<std::uint32_t*>(Device::shared() + offset);
  Device::sync(barrier);
  if (thread == 0) {
    std::uint32_t& arrived =
        launch.pass.arrived[Device::index(static_cast<unsigned>(LaunchDimension::GridX))];
    Device::fence();
    const std::uint32_t before = Device::fetch_add(arrived, std::uint32_t{1});
    *last = before + 1 == Device::extent(static_cast<unsigned>(LaunchDimension::GridY));
    if (*last != 0) arrived = 0;
    Device::fence();
  }
  Device::sync(barrier);
  return *last != 0;
}

}  // namespace forestvm::kernels
