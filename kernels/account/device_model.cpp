// See device_model.hpp.
#include "kernels/account/device_model.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace forestvm::kernels {
namespace {

constexpr ArchitectureInfo kArchitectures[] = {
#define FVM_ARCHITECTURE(name, vendor, ...) {#name, Vendor::vendor, __VA_ARGS__},
#include "kernels/account/architectures.def"
};

constexpr DeviceModel kDevices[] = {
#define FVM_GPU(name, architecture, ...) {name, Architecture::architecture, __VA_ARGS__},
#include "kernels/account/devices.def"
};

struct LayoutRegisters {
  Layout layout;
  std::array<std::uint32_t, std::size(kArchitectures)> counts;
};
constexpr LayoutRegisters kRegisters[] = {
#define FVM_LAYOUT_KERNEL(layout, ...) {Layout::layout, {__VA_ARGS__}},
#include "kernels/link/layout_kernels.def"
};

/// Returns whether each row of layout_kernels.def has a number for each architecture.
constexpr bool is_complete() {
  for (const LayoutRegisters& row : kRegisters)
    for (const std::uint32_t count : row.counts)
      if (count == 0) return false;
  return true;
}
static_assert(is_complete());

/// The most registers that a kernel may use. A kernel that has not been compiled is taken to use all of them.
constexpr std::uint32_t max_registers(Vendor vendor) { return vendor == Vendor::Hip ? 128 : 64; }

constexpr std::uint32_t round_up(std::uint32_t value, std::uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

constexpr std::uint32_t kUnlimited = std::numeric_limits<std::uint32_t>::max();

std::uint32_t blocks_by_registers(const ArchitectureInfo& sm, std::uint32_t block_warps,
                                  std::uint32_t registers) {
  if (registers == 0) return kUnlimited;
  const std::uint32_t of_warp = round_up(registers * sm.lanes, sm.register_unit);
  // A warp takes all its registers from one partition.
  return sm.registers / sm.partitions / of_warp * sm.partitions / block_warps;
}

}  // namespace

const ArchitectureInfo& info(Architecture architecture) {
  return kArchitectures[static_cast<std::size_t>(architecture)];
}

std::span<const DeviceModel> device_models() { return kDevices; }

DeviceLimits limits_of(const DeviceModel& device) {
  DeviceLimits limits;
  limits.shared_bytes = info(device.architecture).block_shared;
  if (info(device.architecture).vendor == Vendor::Hip) limits.grid_threads = UINT32_MAX;
  return limits;
}

std::uint32_t registers_of(Layout layout, Architecture architecture) {
  for (const LayoutRegisters& kernel : kRegisters)
    if (kernel.layout == layout) return kernel.counts[static_cast<std::size_t>(architecture)];
  return max_registers(info(architecture).vendor);
}

std::string_view name_of(OccupancyLimit limit) {
  switch (limit) {
    case OccupancyLimit::Threads:
      return "threads";
    case OccupancyLimit::SharedMemory:
      return "shared memory";
    case OccupancyLimit::Registers:
      return "registers";
    case OccupancyLimit::Blocks:
      return "blocks";
  }
  return "?";
}

Occupancy occupancy(Architecture architecture, std::uint32_t threads, std::uint32_t shared_bytes,
                    std::uint32_t registers) {
  const ArchitectureInfo& sm = info(architecture);
  const std::uint32_t block_warps = (threads + sm.lanes - 1) / sm.lanes;
  const std::uint32_t shared = round_up(shared_bytes + sm.reserved, sm.shared_unit);
  const std::uint32_t by_shared = shared_bytes > sm.block_shared ? 0
                                  : shared == 0                  ? kUnlimited
                                                                 : sm.shared / shared;
  const std::array<std::uint32_t, 4> blocks = {sm.warps / block_warps, by_shared,
                                               blocks_by_registers(sm, block_warps, registers), sm.blocks};
  const auto* const least = std::min_element(blocks.begin(), blocks.end());
  return {*least, *least * block_warps, sm.warps, static_cast<OccupancyLimit>(least - blocks.begin())};
}

}  // namespace forestvm::kernels
