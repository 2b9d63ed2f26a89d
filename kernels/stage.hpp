// Copies of rows into a block's shared memory, for StagedRows, which its threads make together. Barriers
// before and after are the caller's.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/interpret.hpp>

#include "kernels/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// The calling thread's number in its block, and how many have one.
struct BlockThread {
  std::uint32_t number, count;
};

struct alignas(16) FourValues {
  float values[4];
};

/// Copies rows to where StagedRows finds them, value by value, a Part of a row at a time: each thread parts
/// of one row after the other, its neighbours those of neighbouring rows, so that no two threads of a warp
/// write to one bank.
template <class Part>
FVM_DEVICE void stage_parts(const Launch& launch, const Range& rows, std::uint32_t stride, float* values,
                            BlockThread thread) {
  constexpr std::uint32_t kWidth = sizeof(Part) / sizeof(float);
  const std::uint32_t parts = launch.program.num_features / kWidth;
  FVM_NO_UNROLL
  for (std::uint32_t i = thread.number; i < parts * stride; i += thread.count) {
    const std::uint32_t row = i % stride, first = i / stride * kWidth;
    if (row >= rows.size()) continue;
    const float* const from =
        Device::in_global(launch.pass.rows) + (rows.begin + row) * launch.pass.row_stride + first;
    const Part part = *reinterpret_cast<const Part*>(from);
    for (std::uint32_t k = 0; k < kWidth; ++k)
      values[(first + k) * stride + row] = reinterpret_cast<const float*>(&part)[k];
  }
}

/// `stride`: floats from a feature to the next, not fewer than rows.
FVM_DEVICE void stage_rows(const Launch& launch, const Range& rows, std::uint32_t stride, float* values,
                           BlockThread thread) {
  const bool by_fours = launch.program.num_features % 4 == 0 && launch.pass.row_stride % 4 == 0 &&
                        reinterpret_cast<std::uintptr_t>(launch.pass.rows) % sizeof(FourValues) == 0;
  if (by_fours)
    stage_parts<FourValues>(launch, rows, stride, values, thread);
  else
    stage_parts<float>(launch, rows, stride, values, thread);
}

}  // namespace forestvm::kernels
