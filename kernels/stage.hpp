// Copies into a block's shared memory, which its threads make together: rows, for StagedRows, and the nodes
// of trees. Barriers before and after are the caller's.
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

/// Trees [begin, end) of a group that are in shared memory, or on their way there.
struct StagedGroup {
  std::uint32_t group, begin, end;
  std::uint32_t tree_count;  ///< that lie interleaved
  std::int32_t offset;       ///< in shared memory, bytes, of the group's first node, as if all were there
};

/// Where copies of trees go, in shared memory.
struct CopyTarget {
  std::uint32_t offset;
  std::uint32_t barrier;  ///< at which bulk copies arrive
  bool bulk;              ///< so they do, all of them in one phase of the barrier
};

/// Begins to copy lines of so many bytes, a stride apart, to `offset` of shared memory, one behind the other,
/// as many bytes at once as all of them are aligned to: at least 4.
FVM_DEVICE void copy_lines(std::uint32_t offset, const std::byte* from, std::uint32_t bytes,
                           std::size_t stride, std::uint32_t lines, BlockThread thread) {
  unsigned width = kCopyAlignment;
  while ((reinterpret_cast<std::uintptr_t>(from) | bytes | stride) % width != 0) width /= 2;
  const std::uint32_t of_line = bytes / width;
  FVM_NO_UNROLL
  for (std::uint32_t i = thread.number; i < of_line * lines; i += thread.count)
    Device::copy_async(Device::shared() + offset + std::size_t{i} * width,
                       from + i / of_line * stride + std::size_t{i % of_line} * width, width);
}

/// Begins to copy so many bytes, from an address that is aligned to 16. Bulk copies are one thread's.
FVM_DEVICE void copy_piece(const CopyTarget& to, const std::byte* from, std::uint32_t bytes,
                           BlockThread thread) {
  const std::uint32_t whole = bytes / kCopyAlignment * kCopyAlignment;
  if (!to.bulk) {
    copy_lines(to.offset, from, whole, 0, 1, thread);
  } else if (thread.number == 0) {
    Device::expect_bulk(to.barrier, whole);
    if (whole != 0) Device::copy_bulk(to.offset, from, whole, to.barrier);
  }
  copy_lines(to.offset + whole, from + whole, bytes - whole, 0, 1, thread);
}

/// Begins to copy the nodes of trees [begin, end) of a group, counted from its first, and says in `staged`
/// how they will lie there.
FVM_DEVICE void stage_trees(const LaunchGroup& group, std::uint32_t begin, std::uint32_t end,
                            const CopyTarget& to, BlockThread thread, StagedGroup& staged) {
  const TreeDesc& first = group.data.trees[begin];
  const TreeDesc& last = group.data.trees[end - 1];
  if (group.interleaved) {
    const std::uint32_t trees = end - begin;
    const std::size_t stride = std::size_t{group.data.tree_count} * group.node_bytes;
    const std::size_t from = std::size_t{begin} * group.node_bytes;
    copy_lines(to.offset, group.data.nodes + from, trees * group.node_bytes, stride, first.node_count,
               thread);
    staged.offset = static_cast<std::int32_t>(to.offset - static_cast<std::uint32_t>(from));
    staged.tree_count = trees;
    return;
  }
  const std::size_t from = std::size_t{first.first_node} * group.node_bytes;
  const std::size_t aligned = from / kCopyAlignment * kCopyAlignment;
  const auto bytes = static_cast<std::uint32_t>(
      (std::size_t{last.first_node} + last.node_count) * group.node_bytes - aligned);
  copy_piece(to, group.data.nodes + aligned, bytes, thread);
  staged.offset = static_cast<std::int32_t>(to.offset - static_cast<std::uint32_t>(aligned));
}

}  // namespace forestvm::kernels
