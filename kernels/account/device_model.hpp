// GPUs as data: what their vendors say of them, and how many blocks of a launch one of their multiprocessors
// holds.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <forestvm/core/bytecode.hpp>

#include "kernels/link/link.hpp"

namespace forestvm::kernels {

enum class Vendor : std::uint8_t { Cuda, Hip };

/// Rows of architectures.def, which says what the fields of ArchitectureInfo are.
enum class Architecture : std::uint8_t {
#define FVM_ARCHITECTURE(name, ...) name,
#include "kernels/account/architectures.def"
};

struct ArchitectureInfo {
  std::string_view name;
  Vendor vendor;
  std::uint32_t lanes, warps, blocks, registers, partitions, register_unit;
  std::uint32_t shared, block_shared, reserved, shared_unit, issue;
};

const ArchitectureInfo& info(Architecture architecture);

/// A row of devices.def.
struct DeviceModel {
  std::string_view name;
  Architecture architecture;
  std::uint32_t sms;
  double clock_mhz, memory_gbs, l2_mib, bus_gbs;
  std::string_view text;
};

std::span<const DeviceModel> device_models();

/// Returns true if gpu_costs.hpp holds for the device, so that the times of calls can be estimated.
inline bool is_estimated(const DeviceModel& device) { return device.architecture == Architecture::sm_90; }

/// Returns the limits that a device sets for launches.
DeviceLimits limits_of(const DeviceModel& device);

/// Returns the number of registers of a thread that walks a declared layout, from layout_kernels.def. A layout without
/// a kernel has the most that a kernel may use.
std::uint32_t registers_of(Layout layout, Architecture architecture);

/// The limit that keeps an SM from holding one more block.
enum class OccupancyLimit : std::uint8_t { Threads, SharedMemory, Registers, Blocks };
std::string_view name_of(OccupancyLimit limit);

struct Occupancy {
  std::uint32_t blocks = 0;      ///< blocks that an SM holds; 0: not even one fits
  std::uint32_t warps = 0;       ///< warps of these blocks
  std::uint32_t most_warps = 0;  ///< most warps that an SM can hold of any launch
  OccupancyLimit limit = OccupancyLimit::Threads;
};

/// Returns how many blocks an SM holds, by the threads and the shared memory of a block and the registers of
/// a thread, with the rules of cuda_occupancy.h (CUDA 13.0). If several limits are reached at once, the first
/// enumerator is given.
Occupancy occupancy(Architecture architecture, std::uint32_t threads, std::uint32_t shared_bytes,
                    std::uint32_t registers);

}  // namespace forestvm::kernels
