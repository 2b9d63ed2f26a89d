// Copies trees into a block's shared memory: all its threads copy nodes together, or one thread makes bulk copies,
// into one buffer or into two in turns. The caller makes the barriers of the block.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/interpret.hpp>

#include "kernels/device/stage.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// Trees [begin, end) of a group that are in shared memory, or on their way there.
struct StagedGroup {
  std::uint32_t group, begin, end;
  std::uint32_t tree_count;  ///< number of trees that lie interleaved, if the layout interleaves trees
  /// Offset in shared memory of the group's first node, whether or not that node is there. It may be negative.
  std::int32_t offset;
};

/// The address in shared memory to which trees are copied.
struct CopyTarget {
  std::uint32_t offset;   ///< bytes from the beginning of shared memory
  std::uint32_t barrier;  ///< offset of the barrier at which bulk copies arrive
  bool bulk;              ///< true if copies are made in bulk, all of them in one phase of the barrier
};

/// Begins to copy lines of `bytes` bytes, which are `stride` bytes apart, to `offset` of shared memory,
/// without gaps. Copies are as wide as the alignment of all three allows: at least 4 bytes.
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

/// Begins to copy `bytes` bytes from an address that is aligned to 16. One thread makes the bulk copies.
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

/// A thread's knowledge of the launch's copies: which trees have arrived, and which are on their way.
class StagedTrees {
 public:
  /// Knows nothing until start() is called, which launches without copies do without.
  FVM_DEVICE StagedTrees() {}

  /// Lets one thread make the barriers at which bulk copies arrive. Returns true if there are any: then all threads
  /// must come to a barrier of the block before one of them uses the barriers of copies.
  FVM_DEVICE bool start(const Launch& launch, BlockThread thread) {
    bool any = false;
    FVM_NO_UNROLL
    for (std::uint32_t i = 0; i < launch.copy_count; ++i) {
      arrived_[i] = coming_[i] = {};
      begun_[i] = 0;
      const LaunchCopy& copy = launch.copies[i];
      if (!Device::has_bulk_copies() || !copy.bulk) continue;
      any = true;
      if (thread.number != 0) continue;
      Device::make_bulk_barrier(copy.barriers);
      Device::make_bulk_barrier(copy.barriers + kBulkBarrierBytes);
    }
    return any;
  }

  /// Begins to copy the trees of the range that belong to the instruction's group. If there is one buffer, no
  /// thread may read it any more; if there are two, the one that was not filled last is the target.
  FVM_DEVICE_COLD void begin(const Launch& launch, const LinkedInst& inst, const Range& trees,
                             BlockThread thread) {
    const std::uint32_t number = linked<Op::CacheTrees, LinkedField::Copy>(inst);
    const LaunchCopy& copy = launch.copies[number];
    const std::uint32_t group_number = linked<Op::CacheTrees, LinkedField::Group>(inst);
    const LaunchGroup& group = launch.program.groups[group_number];
    const std::uint32_t last = group.first_tree + group.data.tree_count;
    const std::uint32_t begin = trees.begin > group.first_tree ? trees.begin : group.first_tree;
    const std::uint32_t end = trees.end < last ? trees.end : last;
    StagedGroup& coming = coming_[number];
    coming = {group_number, begin, begin, group.data.tree_count, 0};
    if (begin >= end) return;
    coming.end = end;
    const std::uint32_t use = begun_[number]++;
    const CopyTarget to{copy.offset + (copy.ahead ? use % 2 * copy.buffer_bytes : 0), barrier_of(copy, use),
                        Device::has_bulk_copies() && copy.bulk};
    stage_trees(group, begin - group.first_tree, end - group.first_tree, to, thread, coming);
  }

  /// Waits until the copies that were begun last have arrived: the calling thread's own copies and bulk copies.
  FVM_DEVICE void finish(const Launch& launch, std::uint32_t number, std::uint32_t barrier) {
    arrived_[number] = coming_[number];
    Device::wait_copies();
    const LaunchCopy& copy = launch.copies[number];
    if (!Device::has_bulk_copies() || !copy.bulk) return;
    if (coming_[number].begin == coming_[number].end) return;
    const std::uint32_t use = begun_[number] - 1;
    Device::wait_bulk(barrier_of(copy, use), (copy.ahead ? use / 2 : use) % 2, barrier);
  }

  /// Calls visit with each group of trees that has arrived.
  template <class Visit>
  FVM_DEVICE void for_groups(const Launch& launch, const Visit& visit) const {
    FVM_NO_UNROLL
    for (std::uint32_t i = 0; i < launch.copy_count; ++i) visit(arrived_[i]);
  }

 private:
  /// Returns the offset of the barrier of the buffer that a copy fills when it is begun for the `use`-th time,
  /// from 0 on. Two buffers are filled in turns.
  FVM_DEVICE static std::uint32_t barrier_of(const LaunchCopy& copy, std::uint32_t use) {
    return copy.barriers + (copy.ahead ? use % 2 * kBulkBarrierBytes : 0);
  }

  StagedGroup arrived_[kStagedTrees];
  StagedGroup coming_[kStagedTrees];   ///< trees that each copy brought last or is bringing
  std::uint32_t begun_[kStagedTrees];  ///< number of times that each copy was begun
};

}  // namespace forestvm::kernels
