// The machine of one GPU thread: what interpret() runs a phase of a program on, in every thread of a launch at
// once. A map gives each thread an iteration of its own; thread_work.hpp says how threads share the other code. A
// thread without an iteration goes through the code idly, because it must come to the barriers.
//
// Barriers stand where what threads have written may next be read by others: where a map of the block begins
// and ends, around reductions, and around copies into shared memory. All threads run the same instructions,
// so that all agree on whether one is due.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>

#include "kernels/device/encode_row.hpp"
#include "kernels/device/join_blocks.hpp"
#include "kernels/device/layout_list.hpp"
#include "kernels/device/stage.hpp"
#include "kernels/device/stage_trees.hpp"
#include "kernels/device/thread_state.hpp"
#include "kernels/device/thread_sums.hpp"
#include "kernels/device/walk.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// Returns the part of a range of trees that is walked, which may be empty. It is called, because few calls choose
/// rounds.
FVM_DEVICE_CALL Range within(Range trees, TreeRange walked) {
  if (walked.end == 0) return trees;
  if (trees.begin < walked.begin) trees.begin = walked.begin;
  if (trees.end > walked.end) trees.end = walked.end;
  if (trees.end < trees.begin) trees.end = trees.begin;
  return trees;
}

/// Runs instructions. Those of most calls are inlined, so that they read the launch from constant memory. Rare
/// instructions, and sums that are not float32, are function calls. A function that is called gets a copy of the
/// machine: if the machine's own address were known elsewhere, compilers would read its pointer to the launch from
/// memory, and the launch through that pointer.
template <class Listed>
class ThreadMachine : public ThreadSums {
 public:
  using enum LinkedField;
  static constexpr bool kRunsInStep = true;

  FVM_DEVICE ThreadMachine(const Launch& launch, InterpreterState& state) : ThreadSums(launch, state) {
    Range rows{0, launch.pass.row_count, 0};
    if ((launch.rows_per_block | launch.copy_count) != 0) {  // asks once in most launches, which have neither
      if (launch.rows_per_block != 0)
        rows = slice(rows, launch.rows_per_block * index(LaunchDimension::GridX),
                     launch.rows_per_block * (index(LaunchDimension::GridX) + 1));
      if (launch.copy_count != 0 && state.staged_trees.start(launch, block_thread()))
        Device::sync(kMaxPhaseCode);
    }
    ranges[kRowsRegister] = rows;
    ranges[kTreesRegister] = {0, launch.program.num_trees, 0};
    state.block_row = rows.begin;
  }

  FVM_DEVICE bool first(const LinkedInst& loop) {
    set_chunk(loop_operands<Op::For>(loop), 0);
    return linked<Op::For, Iterations>(loop) != 0;
  }

  FVM_DEVICE void enter(const LinkedInst& loop) {
    const std::uint32_t dimension = linked<Op::Map, Dimension>(loop);
    const LoopOperands operands = loop_operands<Op::Map>(loop);
    const bool of_block = dimension >= kGridDimensions;
    std::uint32_t iteration;
    if (of_block) {
      settle(loop);
      const IndexInBlock at = IndexInBlock::of_thread();
      share_work(linked<Op::Map, Peers>(loop), at);
      iteration = dimension == kGridDimensions ? at.x : dimension == kGridDimensions + 1 ? at.y : at.z;
    } else {
      iteration = Device::index(dimension);
    }
    const Range chunk = chunk_of(ranges[operands.in], operands.step, iteration);
    ranges[operands.out] = chunk;
    if (!of_block && operands.out == launch_->block_rows) state_->block_row = chunk.begin;
    if (state_->idle != 0 || chunk.size() == 0) ++state_->idle;
  }

  FVM_DEVICE bool leave(const LinkedInst& end) {
    const std::uint32_t dimension = linked<Op::End, Dimension>(end);
    if (dimension == kDimensions) return next(launch_->code[linked<Op::End, Partner>(end)]);
    if (state_->idle != 0) --state_->idle;
    if (dimension >= kGridDimensions) {
      settle(end);
      share_work(linked<Op::End, Peers>(end), IndexInBlock::of_thread());
    } else if (linked<Op::End, Joined>(end) != 0) {
      copy().join_blocks(end);
    }
    return false;
  }

  FVM_DEVICE void cache_rows(const LinkedInst& inst) {
    const std::uint32_t stride = linked<Op::CacheRows, Stride>(inst);
    if (stride == 0) return;  // nothing is kept: walks read global memory
    Device::sync(barrier_at(inst));
    const Range rows = ranges[linked<Op::CacheRows, Rows>(inst)];
    std::byte* const to = Device::shared() + linked<Op::CacheRows, Offset>(inst);
    const auto staged_as = static_cast<StagedAs>(linked<Op::CacheRows, Staged>(inst));
    state_->staged_rows = {Device::shared_address(to), rows.begin, stride,
                           linked<Op::CacheRows, Pitch>(inst)};
    state_->staged_rows_end = rows.end;
    if constexpr (kAsksWhatIsStaged) state_->staged_as = staged_as;
    if (are_values(staged_as)) {
      if constexpr (Listed::kTakesValues) stage_values(inst, rows, to);
    } else if (staged_as == StagedAs::Codes || launch_->pass.encode_to == nullptr) {
      if constexpr (Listed::kTakesCodes)
        stage_codes(*launch_, rows, stride, reinterpret_cast<std::uint8_t*>(to), block_thread());
    }
    sync_block(inst);
  }

  FVM_DEVICE void cache_trees(const LinkedInst& inst) const { copy().copy_trees(inst); }

  FVM_DEVICE void encode(const LinkedInst& inst) const {
    if (launch_->pass.encode_to == nullptr) return;
    if (!Listed::kTakesCodes || linked<Op::Encode, Stride>(inst) == 0) return copy().encode_rows(inst);
    if constexpr (Listed::kTakesCodes) encode_to_shared(inst);
  }

  FVM_DEVICE void walk(const LinkedInst& inst) {
    const std::uint32_t accumulator = linked<Op::Walk, AccOut>(inst);
    state_->unsettled = true;
    if (state_->idle != 0) return;
    ThreadWalk walk;
    if (!set_walk(walk, linked<Op::Walk, Walker>(inst), ranges[linked<Op::Walk, Select>(inst)],
                  ranges[linked<Op::Walk, Trees>(inst)], ranges[linked<Op::Walk, Rows>(inst)]))
      return;
    walk.width = launch_->accumulators[accumulator].width;
    walk.out_row = walk.rows.first;
    walk.out = accumulator_row<std::byte>(accumulator, walk.out_row);
    walk.delivery = delivery_of(launch_->accumulators[accumulator].kind);
    with_rows(walk, [&]<class View>(const auto& rows_at) { walk_rows<View>(walk, rows_at); });
  }

  FVM_DEVICE void leaves(const LinkedInst& inst) const { copy().write_leaves(inst); }

 private:
  /// Begins the next iteration of a `for`. Returns false if there is none.
  FVM_DEVICE bool next(const LinkedInst& loop) {
    const LoopOperands operands = loop_operands<Op::For>(loop);
    const std::uint32_t iteration = ranges[operands.out].iteration + 1;
    if (iteration == linked<Op::For, Iterations>(loop)) return false;
    set_chunk(operands, iteration);
    return true;
  }

  /// Returns a copy, on which functions that are not inlined are called.
  FVM_DEVICE ThreadMachine copy() const { return ThreadMachine(interpreted()); }
  FVM_DEVICE explicit ThreadMachine(const ThreadWork& work) : ThreadSums(work) {}

  // --- instructions that are not inlined ---

  /// Ends the work of all blocks of the same grid.x but the one that comes here last. The blocks that do not go on come
  /// to the remaining barriers, and do nothing else.
  FVM_DEVICE_COLD void join_blocks(const LinkedInst& end) {
    const bool last = joins_last(*launch_, linked<Op::End, Offset>(end), state_->number, barrier_at(end));
    state_->unsettled = false;
    if (!last) state_->idle = kIdleToTheEnd;
  }

  /// Copies trees into shared memory. Trees that are copied ahead go to two buffers, one after the other: when those of
  /// an iteration have arrived, all threads have left the other buffer, and the trees of the next iteration are on
  /// their way there.
  FVM_DEVICE_COLD void copy_trees(const LinkedInst& inst) {
    const std::uint32_t number = linked<Op::CacheTrees, Copy>(inst);
    const LaunchCopy& copy = launch_->copies[number];
    const Range trees = ranges[linked<Op::CacheTrees, Trees>(inst)];
    if (!copy.ahead) sync_block(inst);
    if (!copy.ahead || trees.iteration == 0)
      interpreter().staged_trees.begin(*launch_, inst, trees, block_thread());
    interpreter().staged_trees.finish(*launch_, number, barrier_at(inst));
    sync_block(inst);
    if (copy.ahead)
      interpreter().staged_trees.begin(
          *launch_, inst, chunk_of(ranges[copy.in], copy.step, trees.iteration + 1), block_thread());
  }

  /// Encodes rows in global memory, or in shared memory for a kernel that does not walk them.
  FVM_DEVICE_COLD void encode_rows(const LinkedInst& inst) {
    if (linked<Op::Encode, Stride>(inst) != 0) return encode_to_shared(inst);
    const LaunchPass& pass = launch_->pass;
    const std::uint32_t columns = launch_->program.column_count;
    for_rows(ranges[linked<Op::Encode, Rows>(inst)], [&](std::uint32_t row) {
      std::uint8_t* const codes = pass.encode_to + code_offset(row, columns);
      encode_row(
          launch_->program, pass.rows + row * pass.row_stride,
          [&](std::uint32_t column, std::uint8_t code) { codes[std::size_t{column} * kCodeRows] = code; });
    });
  }

  FVM_DEVICE void encode_to_shared(const LinkedInst& inst) const {
    const LaunchPass& pass = launch_->pass;
    const std::uint32_t stride = linked<Op::Encode, Stride>(inst);
    for_rows(ranges[linked<Op::Encode, Rows>(inst)], [&](std::uint32_t row) {
      auto* const staged =
          reinterpret_cast<std::uint8_t*>(Device::shared() + linked<Op::Encode, Offset>(inst)) +
          staged_code(row - state_->staged_rows.first);
      encode_row(launch_->program, pass.rows + row * pass.row_stride,
                 [&](std::uint32_t column, std::uint8_t code) {
                   staged[column * stride * sizeof(std::uint32_t)] = code;
                 });
    });
  }

  FVM_DEVICE_COLD void write_leaves(const LinkedInst& inst) {
    state_->unsettled = true;
    if (state_->idle != 0 || launch_->pass.leaves == nullptr) return;
    ThreadWalk walk;
    if (!set_walk(walk, linked<Op::Leaves, Walker>(inst), ranges[linked<Op::Leaves, Select>(inst)],
                  ranges[linked<Op::Leaves, Trees>(inst)], ranges[linked<Op::Leaves, Rows>(inst)]))
      return;
    walk.width = launch_->program.num_trees;
    walk.out_row = 0;
    walk.out = reinterpret_cast<std::byte*>(launch_->pass.leaves);
    walk.delivery = Delivery::LeafNumber;
    with_rows(walk, [&]<class View>(const auto& rows_at) { deliver_leaves<View, false>(walk, rows_at); });
  }

  // --- the block's threads ---

  FVM_DEVICE BlockThread block_thread() const { return {state_->number, threads()}; }

  /// True if rows in shared memory may be values or codes. A kernel whose layouts all take the same of the two gets
  /// no others: linking stages what a phase's walks take.
  static constexpr bool kAsksWhatIsStaged = Listed::kTakesValues && Listed::kTakesCodes;

  FVM_DEVICE static bool are_values(StagedAs staged) {
    return kAsksWhatIsStaged ? staged == StagedAs::Values : Listed::kTakesValues;
  }

  /// Copies values of rows to shared memory, where staged_values() says.
  FVM_DEVICE void stage_values(const LinkedInst& inst, const Range& rows, std::byte* to) const {
    if (const std::uint32_t stride = linked<Op::CacheRows, Stride>(inst); stride != 1)
      return stage_rows(*launch_, rows, stride, reinterpret_cast<float*>(to), block_thread());
    stage_whole_rows(*launch_, rows, linked<Op::CacheRows, RowBits>(inst), linked<Op::CacheRows, Pitch>(inst),
                     to, block_thread());
  }

  FVM_DEVICE void set_chunk(const LoopOperands& loop, std::uint32_t iteration) {
    ranges[loop.out] = chunk_of(ranges[loop.in], loop.step, iteration);
  }

  // --- walks ---

  /// Describes the thread's walk. Returns false if the thread has nothing to walk.
  FVM_DEVICE bool set_walk(ThreadWalk& walk, std::uint32_t walker, const Range& select, const Range& trees,
                           const Range& rows) const {
    walk.trees = trees;
    walk.rows = rows_of_thread(rows);
    if (trees.begin == trees.end || walk.rows.count == 0) return false;
    walk.walker = launch_->program.walkers + (walker + select.iteration);
    const LaunchGroup& group = launch_->program.groups[walk.walker->group];
    walk.program = &launch_->program;
    walk.group = group.data;
    walk.staged = false;
    walk.first_tree = group.first_tree;
    if (launch_->copy_count == 0) return true;
    walk.trees = within(trees, launch_->pass.walked);
    interpreter().staged_trees.for_groups(*launch_, [&](const StagedGroup& staged) {
      if (staged.group != walk.walker->group || staged.begin > walk.trees.begin ||
          walk.trees.end > staged.end)
        return;
      walk.staged = true;
      walk.staged_offset = staged.offset;
      walk.group.nodes = Device::shared() + staged.offset;
      walk.group.tree_count = staged.tree_count;
    });
    return true;
  }

  /// Calls visit.operator()<View>() with the rows as the walk finds them, in shared or in global memory.
  template <class Visit>
  FVM_DEVICE void with_rows(const ThreadWalk& walk, const Visit& visit) const {
    const LaunchPass& pass = launch_->pass;
    const std::uint32_t last = walk.rows[walk.rows.count - 1];
    const bool there = state_->staged_rows.first <= walk.rows.first && last < state_->staged_rows_end;
    const bool values = are_values(state_->staged_as);
    with_listed_view(Listed{}, launch_->program.groups[walk.walker->group].layout, [&]<class View>() {
      if constexpr (kTakesCodes<View>) {
        if (there && !values)
          visit.template operator()<View>(StagedCodes{state_->staged_rows.address, state_->staged_rows.first,
                                                      state_->staged_rows.stride});
        else
          visit.template operator()<View>(CodedTiles{pass.codes, launch_->program.column_count});
      } else if (there && values) {
        visit.template operator()<View>(state_->staged_rows);
      } else {
        visit.template operator()<View>(GlobalRows{pass.rows, pass.row_stride});
      }
    });
  }
};

}  // namespace forestvm::kernels
