// Copies rows (for StagedRows) or codes of rows (for StagedCodes) into a block's shared memory, by all threads of
// the block together. The caller makes the barriers before and after.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/interpret.hpp>
#include <forestvm/internal/gpu_banks.hpp>

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

/// The parts of rows that a thread of a block copies, one after the other. Neighbouring threads have the same part of
/// neighbouring rows, so that no two threads of a warp write to one bank. Shared memory has room for `stride` rows.
class ThreadParts {
 public:
  FVM_DEVICE ThreadParts(std::uint32_t stride, BlockThread thread)
      : row(thread.number), part(0), stride_(stride), row_step_(0), part_step_(1) {
    if (stride == 1) {  // no division for a single row
      row = 0;
      part = thread.number;
      part_step_ = thread.count;
    } else if (thread.count != stride) {
      part_step_ = thread.count / stride;
      row_step_ = thread.count % stride;
      part = row / stride;
      row %= stride;
    }
  }

  FVM_DEVICE void next() {
    row += row_step_;
    part += part_step_;
    if (row >= stride_) {
      row -= stride_;
      ++part;
    }
  }

  std::uint32_t row, part;

 private:
  std::uint32_t stride_, row_step_, part_step_;
};

/// Copies the calling thread's parts of `rows` rows of `parts` parts: calls store(row, part, load(row, part)) for each.
/// While there are several, it loads several before it stores them, because a load takes hundreds of clocks.
template <class Load, class Store>
FVM_DEVICE void copy_parts(std::uint32_t rows, std::uint32_t stride, std::uint32_t parts, BlockThread thread,
                           const Load& load, const Store& store) {
  constexpr unsigned kAtOnce = 4;
  if (rows == 0) return;
  ThreadParts at(stride, thread);
  FVM_NO_UNROLL
  while (at.part < parts) {
    ThreadParts several = at;
    std::uint32_t row[kAtOnce], part[kAtOnce];
    for (unsigned i = 0; i < kAtOnce; ++i) {
      row[i] = several.row;
      part[i] = several.part;
      several.next();
    }
    if (part[kAtOnce - 1] >= parts) {  // fewer are left
      if (at.row < rows) store(at.row, at.part, load(at.row, at.part));
      at.next();
      continue;
    }
    at = several;
    decltype(load(0, 0)) loaded[kAtOnce];
    // Loads the last row in place of rows that are not there, so that no load waits for a branch.
    for (unsigned i = 0; i < kAtOnce; ++i) loaded[i] = load(row[i] < rows ? row[i] : rows - 1, part[i]);
    for (unsigned i = 0; i < kAtOnce; ++i)
      if (row[i] < rows) store(row[i], part[i], loaded[i]);
  }
}

/// Copies rows to where StagedRows finds them, value by value, a Part of a row at a time.
template <class Part>
FVM_DEVICE void stage_parts(const Launch& launch, const Range& rows, std::uint32_t stride, float* values,
                            BlockThread thread) {
  constexpr std::uint32_t kWidth = sizeof(Part) / sizeof(float);
  copy_parts(
      rows.size(), stride, launch.program.row_width / kWidth, thread,
      [&](std::uint32_t row, std::uint32_t part) {
        const float* const from =
            launch.pass.rows + (rows.begin + row) * launch.pass.row_stride + part * kWidth;
        return Device::load_global(reinterpret_cast<const Part*>(from));
      },
      [&](std::uint32_t row, std::uint32_t part, const Part& copied) {
        for (std::uint32_t k = 0; k < kWidth; ++k)
          values[(part * kWidth + k) * stride + row] = reinterpret_cast<const float*>(&copied)[k];
      });
}

/// Returns true if rows can be copied four values at a time.
FVM_DEVICE bool by_fours(const Launch& launch) {
  return (launch.program.row_width | launch.pass.row_stride |
          reinterpret_cast<std::uintptr_t>(launch.pass.rows) / sizeof(float)) %
             4 ==
         0;
}

/// Copies parts first, first + step, ... of a row of `parts` parts. Copies of all parts are under way at once; where a
/// GPU has no copies that threads need not wait for, those of several parts are.
template <class Part>
FVM_DEVICE void copy_row(Part* to, const Part* from, std::uint32_t parts, std::uint32_t first,
                         std::uint32_t step) {
  std::uint32_t part = first;
  if constexpr (!Device::kCopiesAsync) {
    constexpr unsigned kAtOnce = 4;
    FVM_NO_UNROLL
    for (; part + (kAtOnce - 1) * step < parts; part += kAtOnce * step) {
      Part loaded[kAtOnce];
      for (unsigned i = 0; i < kAtOnce; ++i) loaded[i] = Device::load_global(from + part + i * step);
      for (unsigned i = 0; i < kAtOnce; ++i) to[part + i * step] = loaded[i];
    }
  }
  FVM_NO_UNROLL
  for (; part < parts; part += step)
    Device::copy_async(reinterpret_cast<std::byte*>(to + part),
                       reinterpret_cast<const std::byte*>(from + part), sizeof(Part));
}

/// Copies rows to where StagedRows finds them, one after the other, `pitch` bytes apart. Of a thread's number the
/// lowest `row_bits` bits say which row it copies with others, and the other bits which parts.
FVM_DEVICE void stage_whole_rows(const Launch& launch, const Range& rows, std::uint32_t row_bits,
                                 std::uint32_t pitch, std::byte* values, BlockThread thread) {
  const std::uint32_t row = thread.number & ((1U << row_bits) - 1), first = thread.number >> row_bits,
                      step = thread.count >> row_bits, width = launch.program.row_width;
  if (row < rows.size() && first < step) {
    const float* const from = launch.pass.rows + (rows.begin + row) * launch.pass.row_stride;
    auto* const to = reinterpret_cast<float*>(values + row * pitch);
    if (by_fours(launch))
      copy_row(reinterpret_cast<FourValues*>(to), reinterpret_cast<const FourValues*>(from), width / 4, first,
               step);
    else
      copy_row(to, from, width, first, step);
  }
  Device::wait_copies();
}

/// Copies rows to where StagedRows finds them, feature by feature. `stride` is the number of floats from a feature to
/// the next, not fewer than rows.
FVM_DEVICE void stage_rows(const Launch& launch, const Range& rows, std::uint32_t stride, float* values,
                           BlockThread thread) {
  if (by_fours(launch))
    stage_parts<FourValues>(launch, rows, stride, values, thread);
  else
    stage_parts<float>(launch, rows, stride, values, thread);
}

/// Copies the codes of rows to where StagedCodes finds them. `stride` is the number of words from a column to the next,
/// not fewer than staged_code_words() says.
FVM_DEVICE void stage_codes(const Launch& launch, const Range& rows, std::uint32_t stride,
                            std::uint8_t* staged, BlockThread thread) {
  const std::uint32_t columns = launch.program.column_count;
  copy_parts(
      rows.size(), rows.size(), columns, thread,
      [&](std::uint32_t row, std::uint32_t column) {
        return launch.pass.codes[code_offset(rows.begin + row, columns) + std::size_t{column} * kCodeRows];
      },
      [&](std::uint32_t row, std::uint32_t column, std::uint8_t code) {
        staged[column * stride * sizeof(std::uint32_t) + staged_code(row)] = code;
      });
}

}  // namespace forestvm::kernels
