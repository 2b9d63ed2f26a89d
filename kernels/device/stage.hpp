// Copies rows (for StagedRows) or codes of rows (for StagedCodes) into a block's shared memory, by all threads of
// the block together. The caller makes the barriers before and after.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/interpret.hpp>

#include "kernels/device/walk.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// The number of the calling thread in its block, and the number of the block's threads.
struct BlockThread {
  std::uint32_t number, count;
};

struct alignas(16) FourValues {
  float values[4];
};

/// Visits the parts of rows that the calling thread copies; each row has `parts` of them. Neighbouring threads
/// visit the same part of neighbouring rows, so that no two threads of a warp write to one bank. Shared memory has
/// room for `stride` rows.
template <class Visit>
FVM_DEVICE void for_parts(std::uint32_t rows, std::uint32_t stride, std::uint32_t parts, BlockThread thread,
                          const Visit& visit) {
  std::uint32_t row = thread.number, part = 0, row_step = 0, part_step = 1;
  if (stride == 1) {  // no division for a single row
    row = 0;
    part = thread.number;
    row_step = 0;
    part_step = thread.count;
  } else if (thread.count != stride) {
    part_step = thread.count / stride;
    row_step = thread.count % stride;
    part = row / stride;
    row %= stride;
  }
  FVM_NO_UNROLL
  while (part < parts) {
    if (row < rows) visit(row, part);
    row += row_step;
    part += part_step;
    if (row >= stride) {
      row -= stride;
      ++part;
    }
  }
}

/// Copies rows to where StagedRows finds them, value by value, a Part of a row at a time.
template <class Part>
FVM_DEVICE void stage_parts(const Launch& launch, const Range& rows, std::uint32_t stride, float* values,
                            BlockThread thread) {
  constexpr std::uint32_t kWidth = sizeof(Part) / sizeof(float);
  for_parts(rows.size(), stride, launch.program.row_width / kWidth, thread,
            [&](std::uint32_t row, std::uint32_t part) {
              const float* const from =
                  launch.pass.rows + (rows.begin + row) * launch.pass.row_stride + part * kWidth;
              const Part copied = Device::load_global(reinterpret_cast<const Part*>(from));
              for (std::uint32_t k = 0; k < kWidth; ++k)
                values[(part * kWidth + k) * stride + row] = reinterpret_cast<const float*>(&copied)[k];
            });
}

/// Copies rows to where StagedRows finds them. `stride` is the number of floats from a feature to the next, not
/// fewer than rows.
FVM_DEVICE void stage_rows(const Launch& launch, const Range& rows, std::uint32_t stride, float* values,
                           BlockThread thread) {
  const bool by_fours = launch.program.row_width % 4 == 0 && launch.pass.row_stride % 4 == 0 &&
                        reinterpret_cast<std::uintptr_t>(launch.pass.rows) % sizeof(FourValues) == 0;
  if (by_fours)
    stage_parts<FourValues>(launch, rows, stride, values, thread);
  else
    stage_parts<float>(launch, rows, stride, values, thread);
}

/// Copies the codes of rows to where StagedCodes finds them. `stride` is the number of words from a
/// column to the next, not fewer than rows.
FVM_DEVICE void stage_codes(const Launch& launch, const Range& rows, std::uint32_t stride,
                            std::uint32_t* words, BlockThread thread) {
  const std::uint32_t columns = launch.program.column_count;
  for_parts(rows.size(), stride, columns, thread, [&](std::uint32_t row, std::uint32_t column) {
    const std::uint8_t code =
        launch.pass.codes[code_offset(rows.begin + row, columns) + std::size_t{column} * kCodeRows];
    words[column * stride + row] = std::uint32_t{code} << StagedCodes::kShift;
  });
}

}  // namespace forestvm::kernels
