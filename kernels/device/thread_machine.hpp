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
#include <type_traits>

#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/core/transform.hpp>

#include "kernels/device/add_leaves.hpp"
#include "kernels/device/encode_row.hpp"
#include "kernels/device/layout_list.hpp"
#include "kernels/device/reduction.hpp"
#include "kernels/device/stage.hpp"
#include "kernels/device/stage_trees.hpp"
#include "kernels/device/thread_state.hpp"
#include "kernels/device/thread_work.hpp"
#include "kernels/device/walk.hpp"
#include "kernels/link/known_code.hpp"
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
///
/// Unless `known_code` is None, the machine runs a known code: then it has the functions of that code's instructions
/// only, and calls nothing that knows its address, so that compilers keep the state in registers.
template <class Listed, KnownCode known_code = KnownCode::None>
class ThreadMachine : private ThreadWork {
 public:
  using enum LinkedField;
  static constexpr bool kKnown = known_code != KnownCode::None;
  using KnownSum = typename known::Of<known_code>::Sum;
  using State = std::conditional_t<kKnown, ThreadState, InterpreterState>;

  static constexpr bool kRunsInStep = true;

  using ThreadWork::ranges;

  FVM_DEVICE ThreadMachine(const Launch& launch, State& state) : ThreadWork(launch, state) {
    Range rows{0, launch.pass.row_count, 0};
    if (!kKnown && launch.rows_per_block != 0)
      rows = slice(rows, launch.rows_per_block * index(LaunchDimension::GridX),
                   launch.rows_per_block * (index(LaunchDimension::GridX) + 1));
    ranges[kRowsRegister] = rows;
    ranges[kTreesRegister] = {0, launch.program.num_trees, 0};
    state.block_row = rows.begin;
    if constexpr (!kKnown)
      if (launch.copy_count != 0 && StagedTrees::make_barriers(launch, block_thread()))
        Device::sync(kMaxPhaseCode);
  }

  FVM_DEVICE bool first(const LinkedInst& loop) {
    set_chunk(loop_operands<Op::For>(loop), 0);
    return linked<Op::For, Iterations>(loop) != 0;
  }

  template <class Linked>
  FVM_DEVICE void enter(const Linked& loop) {
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
    if (!of_block && operands.out == (kKnown ? known::kRows : launch_->block_rows))
      state_->block_row = chunk.begin;
    if (state_->idle != 0 || chunk.size() == 0) ++state_->idle;
  }

  template <class Linked>
  FVM_DEVICE bool leave(const Linked& end) {
    const std::uint32_t dimension = linked<Op::End, Dimension>(end);
    if constexpr (!kKnown)
      if (dimension == kDimensions) return next(launch_->code[linked<Op::End, Partner>(end)]);
    if constexpr (kKnown)
      state_->idle =
          0;  // instructions follow the last of the block's ends only, and no block is without rows
    else if (state_->idle != 0)
      --state_->idle;
    if (dimension >= kGridDimensions) {
      settle(end);
      share_work(linked<Op::End, Peers>(end), IndexInBlock::of_thread());
    } else if constexpr (!kKnown) {
      if (linked<Op::End, Joined>(end) != 0) copy().join_blocks(end);
    }
    return false;
  }

  template <class Linked>
  FVM_DEVICE void cache_rows(const Linked& inst) {
    const std::uint32_t stride = linked<Op::CacheRows, Stride>(inst);
    if (!kKnown && stride == 0) return;  // nothing is kept: walks read global memory
    Device::sync(barrier_at(inst));
    const Range rows = ranges[linked<Op::CacheRows, Rows>(inst)];
    std::byte* const to = Device::shared() + linked<Op::CacheRows, Offset>(inst);
    const auto staged_as = static_cast<StagedAs>(linked<Op::CacheRows, Staged>(inst));
    state_->staged_rows = {Device::shared_address(to), rows.begin, stride,
                           linked<Op::CacheRows, Pitch>(inst)};
    state_->staged_rows_end = rows.end;
    state_->staged_as = staged_as;
    if (kKnown || staged_as == StagedAs::Values) {
      if constexpr (Listed::kTakesValues) stage_values(inst, rows, to);
    } else if (staged_as == StagedAs::Codes || launch_->pass.encode_to == nullptr) {
      if constexpr (Listed::kTakesCodes)
        stage_codes(*launch_, rows, stride, reinterpret_cast<std::uint8_t*>(to), block_thread());
    }
    sync_block(inst);
  }

  FVM_DEVICE void cache_trees(const LinkedInst& inst) const { copy().copy_trees(inst); }

  template <class Linked>
  FVM_DEVICE void init(const Linked& inst) {
    fill(linked<Op::Init, AccOut>(inst), ranges[linked<Op::Init, Rows>(inst)], launch_->pass.base);
  }

  FVM_DEVICE void zero(const LinkedInst& inst) {
    fill(linked<Op::Zero, AccOut>(inst), ranges[linked<Op::Zero, Rows>(inst)], nullptr);
  }

  FVM_DEVICE void add_base(const LinkedInst& inst) const { copy().add_base_scores(inst); }

  template <class Linked>
  FVM_DEVICE void privatize(const Linked& inst) {
    const std::uint32_t accumulator = linked<Op::Privatize, AccOut>(inst);
    const LaunchAccumulator& to = launch_->accumulators[accumulator];
    const std::uint32_t iteration = ranges[linked<Op::Privatize, RangeIn>(inst)].iteration;
    // In known code no copies are made of copies.
    state_->copies[accumulator] = iteration + (kKnown ? 0 : state_->copies[to.parent] * to.iterations);
    if (to.stored_elsewhere || linked<Op::Privatize, Zeroed>(inst) != 0) return;
    fill(accumulator, ranges[linked<Op::Privatize, Rows>(inst)], nullptr);
  }

  FVM_DEVICE void encode(const LinkedInst& inst) const {
    if (launch_->pass.encode_to == nullptr) return;
    if (!Listed::kTakesCodes || linked<Op::Encode, Stride>(inst) == 0) return copy().encode_rows(inst);
    if constexpr (Listed::kTakesCodes) encode_to_shared(inst);
  }

  template <class Linked>
  FVM_DEVICE void walk(const Linked& inst) {
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
    if constexpr (kKnown)
      with_listed_view(Listed{}, launch_->group.layout, [&]<class View>() {
        if constexpr (!kTakesCodes<View>) walk_known<known_code, View>(walk, state_->staged_rows);
      });
    else
      with_rows(walk, [&]<class View>(const auto& rows_at) { walk_rows<View>(walk, rows_at); });
  }

  FVM_DEVICE void leaves(const LinkedInst& inst) const { copy().write_leaves(inst); }

  template <class Linked>
  FVM_DEVICE void reduce_dim(const Linked& inst) const {
    const ReductionFields fields = reduction_fields<Op::ReduceDim>(inst);
    if constexpr (kKnown)
      reduce<KnownSum>(inst, fields, false);
    else if (launch_->accumulators[fields.to].kind == AccumulatorKind::F32)
      reduce<F32Sum>(inst, fields, false);
    else
      copy().template reduce_others<Op::ReduceDim>(inst);
  }
  FVM_DEVICE void reduce_inplace(const LinkedInst& inst) const {
    copy().template reduce_others<Op::ReduceInplace>(inst);
  }

  template <class Linked>
  FVM_DEVICE void round(const Linked& inst) const {
    if constexpr (kKnown)
      round_sums<KnownSum, float>(inst);
    else
      copy().round_sums_of_kind(inst);
  }

  template <class Linked>
  FVM_DEVICE void sum_trees(const Linked& inst) const {
    if constexpr (kKnown)
      add_trees<float>(inst);
    else
      copy().add_trees_of_kind(inst);
  }
  template <class Linked>
  FVM_DEVICE void transform(const Linked& inst) const {
    if constexpr (kKnown)
      transform_known(inst);
    else
      copy().transform_rows(inst);
  }

  template <class Linked>
  FVM_DEVICE void store(const Linked& inst) const {
    const std::uint32_t accumulator = linked<Op::Store, AccIn>(inst);
    if (kKnown || (launch_->accumulators[accumulator].kind == AccumulatorKind::F32 &&
                   launch_->pass.wide_values == nullptr))
      store_rows<float>(accumulator, ranges[linked<Op::Store, Rows>(inst)], launch_->pass.values);
    else if constexpr (!kKnown)
      copy().store_others(accumulator, ranges[linked<Op::Store, Rows>(inst)]);
  }
  FVM_DEVICE void label(const LinkedInst& inst) const { copy().label_rows(inst); }

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
  FVM_DEVICE ThreadMachine copy() const { return ThreadMachine(ThreadWork(*launch_, *interpreter().self)); }
  FVM_DEVICE InterpreterState& interpreter() const { return static_cast<InterpreterState&>(*state_); }
  FVM_DEVICE explicit ThreadMachine(const ThreadWork& work) : ThreadWork(work) {}

  // --- instructions that are not inlined ---

  /// Ends the work of all blocks of the same grid.x but the one that comes here last, which sees what the others have
  /// written. The blocks that do not go on come to the remaining barriers, and do nothing else.
  FVM_DEVICE_COLD void join_blocks(const LinkedInst& end) {
    auto* const last = reinterpret_cast<std::uint32_t*>(Device::shared() + linked<Op::End, Offset>(end));
    sync_block(end);
    if (state_->number == 0) {
      std::uint32_t& arrived = launch_->pass.arrived[index(LaunchDimension::GridX)];
      Device::fence();
      const std::uint32_t before = Device::fetch_add(arrived, std::uint32_t{1});
      *last = before + 1 == Device::extent(static_cast<unsigned>(LaunchDimension::GridY));
      if (*last != 0) arrived = 0;
      Device::fence();
    }
    sync_block(end);
    if (*last == 0) state_->idle = kIdleToTheEnd;
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

  FVM_DEVICE_COLD void add_base_scores(const LinkedInst& inst) {
    const std::uint32_t accumulator = linked<Op::AddBase, AccOut>(inst);
    const Range& rows = ranges[linked<Op::AddBase, Rows>(inst)];
    const LaunchProgram& program = launch_->program;
    if (program.score_scale != 1)  // verified: the accumulator holds scores
      with_scores(accumulator, [&]<class Score>() {
        for_rows(rows, [&](std::uint32_t row) {
          Score* const sums = accumulator_row<Score>(accumulator, row);
          FVM_NO_UNROLL
          for (std::uint32_t k = 0; k < program.num_outputs; ++k)
            sums[k] *= static_cast<Score>(program.score_scale);
        });
      });
    with_element(accumulator, [&]<class Element>() {
      for_rows(rows, [&](std::uint32_t row) {
        Element* const sums = accumulator_row<Element>(accumulator, row);
        const double* const base = launch_->pass.base + std::size_t{row} * launch_->pass.base_stride;
        FVM_NO_UNROLL
        for (std::uint32_t k = 0; k < program.num_outputs; ++k)
          forestvm::add_base(sums[k], base[k], program.scale);
      });
    });
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

  FVM_DEVICE_COLD void round_sums_of_kind(const LinkedInst& inst) {
    with_element(linked<Op::Round, AccIn>(inst), [&]<class Element>() {
      with_scores(linked<Op::Round, AccOut>(inst), [&]<class Score>() { round_sums<Element, Score>(inst); });
    });
  }
  template <class Element, class Score, class Linked>
  FVM_DEVICE void round_sums(const Linked& inst) const {
    const std::uint32_t to = linked<Op::Round, AccOut>(inst), from = linked<Op::Round, AccIn>(inst);
    for_rows(ranges[linked<Op::Round, Rows>(inst)], [&](std::uint32_t row) {
      const Element* const sums = accumulator_row<Element>(from, row);
      Score* const rounded = accumulator_row<Score>(to, row);
      FVM_NO_UNROLL
      for (std::uint32_t k = 0; k < launch_->program.num_outputs; ++k)
        rounded[k] = sums[k].template rounded<Score>(launch_->program.scale);
    });
  }

  FVM_DEVICE_COLD void add_trees_of_kind(const LinkedInst& inst) {
    with_scores(linked<Op::SumTrees, AccOut>(inst), [&]<class Score>() { add_trees<Score>(inst); });
  }
  /// Adds the leaves of rows. Threads share sums and not rows, because the trees of an output follow each other.
  template <class Score, class Linked>
  FVM_DEVICE void add_trees(const Linked& inst) const {
    settle(inst);
    state_->unsettled = true;
    if (state_->idle == 0) {
      const std::uint32_t to = linked<Op::SumTrees, AccOut>(inst);
      const std::uint32_t from = linked<Op::SumTrees, AccIn>(inst);
      const Range rows = ranges[linked<Op::SumTrees, Rows>(inst)];
      for_elements(Elements{rows.size(), launch_->program.num_outputs}, state_->peer.number,
                   state_->peer.count, [&](std::uint32_t number, std::uint32_t output) {
                     const std::uint32_t row = rows.begin + number;
                     add_leaves_of_output(*launch_, row, output, accumulator_row<Score>(from, row),
                                          accumulator_row<Score>(to, row)[output]);
                   });
    }
    settle(inst);  // the instructions that follow share rows
  }

  FVM_DEVICE_COLD void transform_rows(const LinkedInst& inst) {
    const std::uint32_t accumulator = linked<Op::Transform, AccOut>(inst);
    const auto kind = static_cast<Transform>(linked<Op::Transform, TransformKind>(inst));
    with_scores(accumulator, [&]<class Score>() {
      for_rows(ranges[linked<Op::Transform, Rows>(inst)],
               [&](std::uint32_t row) { transform_scores(kind, accumulator_row<Score>(accumulator, row)); });
    });
  }

  template <class Linked>
  FVM_DEVICE void transform_known(const Linked& inst) const {
    const std::uint32_t kind = linked<Op::Transform, TransformKind>(inst);
    if (kind == known::kNoTransform) return;
    const std::uint32_t accumulator = linked<Op::Transform, AccOut>(inst);
    for_rows(ranges[linked<Op::Transform, Rows>(inst)], [&](std::uint32_t row) {
      call_transform_row(launch_->program, static_cast<Transform>(kind),
                         accumulator_row<float>(accumulator, row));
    });
  }
  FVM_DEVICE_COLD static void call_transform_row(const LaunchProgram& program, Transform kind,
                                                 float* scores) {
    transform_row(kind, scores, program.num_outputs, program.parameters);
  }

  FVM_DEVICE_COLD void label_rows(const LinkedInst& inst) {
    if (launch_->pass.labels == nullptr) return;
    const std::uint32_t accumulator = linked<Op::Label, AccIn>(inst);
    const auto rule = static_cast<ClassRule>(linked<Op::Label, Rule>(inst));
    const LaunchProgram& program = launch_->program;
    const std::uint32_t width = label_width(rule, program.num_outputs, program.parameters.group_ends);
    with_scores(accumulator, [&]<class Score>() {
      for_rows(ranges[linked<Op::Label, Rows>(inst)], [&](std::uint32_t row) {
        write_labels(rule, accumulator_row<Score>(accumulator, row),
                     launch_->pass.labels + std::size_t{row} * width);
      });
    });
  }

  /// Turns the scores of a row into values. It is not inlined, because phases would otherwise take more than 128
  /// registers on gfx90a.
  template <class Score>
  FVM_DEVICE_COLD void transform_scores(Transform kind, Score* scores) {
    transform_row(kind, scores, launch_->program.num_outputs, launch_->program.parameters);
  }

  /// Writes the labels of a row. It is not inlined, because on Blackwell compilers spill registers of a phase that
  /// contains the rules of labels.
  template <class Score>
  FVM_DEVICE_COLD void write_labels(ClassRule rule, const Score* scores, std::int64_t* labels) {
    label_row(rule, scores, launch_->program.num_outputs, labels, launch_->program.parameters);
  }

  // --- the block's threads ---

  FVM_DEVICE BlockThread block_thread() const { return {state_->number, threads()}; }
  FVM_DEVICE std::uint32_t threads() const { return Sharing::of(launch_->peers).count; }

  /// Copies values of rows to shared memory, where staged_values() says.
  template <class Linked>
  FVM_DEVICE void stage_values(const Linked& inst, const Range& rows, std::byte* to) const {
    if (const std::uint32_t stride = linked<Op::CacheRows, Stride>(inst); stride != 1)
      return stage_rows(*launch_, rows, stride, reinterpret_cast<float*>(to), block_thread());
    stage_whole_rows(*launch_, rows, linked<Op::CacheRows, RowBits>(inst), linked<Op::CacheRows, Pitch>(inst),
                     to, block_thread());
  }

  /// Waits for all threads of the block, which must all come to this instruction.
  template <class Linked>
  FVM_DEVICE void sync_block(const Linked& inst) const {
    Device::sync(barrier_at(inst));
    state_->unsettled = false;
  }

  /// Returns the number of the barrier that stands at an instruction: its pc.
  FVM_DEVICE std::uint32_t barrier_at(const LinkedInst& inst) const {
    return static_cast<std::uint32_t>(&inst - launch_->code);
  }
  template <unsigned pc>
  FVM_DEVICE static constexpr std::uint32_t barrier_at(const KnownInst<known_code, pc>&) {
    return pc;
  }

  /// Makes what threads have written visible to all threads of the block.
  template <class Linked>
  FVM_DEVICE void settle(const Linked& inst) const {
    if (state_->unsettled) sync_block(inst);
  }

  FVM_DEVICE void set_chunk(const LoopOperands& loop, std::uint32_t iteration) {
    ranges[loop.out] = chunk_of(ranges[loop.in], loop.step, iteration);
  }

  // --- sums ---

  /// Sets the rows of an accumulator to `values`, which is LaunchPass::base or null: to zero.
  FVM_DEVICE void fill(std::uint32_t accumulator, Range rows, const double* values) const {
    if constexpr (kKnown)
      fill_rows<KnownSum>(accumulator, rows, values, 0);
    else if (launch_->accumulators[accumulator].starts_alike)
      fill_rows<F32Sum>(accumulator, rows, values, 0);
    else
      copy().fill_others(accumulator, rows, values);
  }
  FVM_DEVICE_COLD void fill_others(std::uint32_t accumulator, Range rows, const double* values) const {
    const std::size_t stride = values == nullptr ? 0 : launch_->pass.base_stride;
    with_element(accumulator,
                 [&]<class Element>() { fill_rows<Element>(accumulator, rows, values, stride); });
  }
  template <Op op>
  FVM_DEVICE_COLD void reduce_others(const LinkedInst& inst) const {
    const ReductionFields fields = reduction_fields<op>(inst);
    with_element(fields.to, [&]<class Element>() { reduce<Element>(inst, fields, op == Op::ReduceInplace); });
  }
  template <class Element, class Linked>
  FVM_DEVICE void reduce(const Linked& inst, const ReductionFields& fields, bool in_place) const {
    settle(inst);
    state_->unsettled = true;
    if (state_->idle == 0) {
      const Range rows = ranges[fields.rows];
      const LaunchAccumulator& from = launch_->accumulators[fields.from];
      const Reduction reduction{fields.to,
                                fields.from,
                                state_->copies[fields.to] * from.iterations,
                                copies_made(ranges[fields.reduced].size(), fields.step, from.iterations),
                                rows.begin,
                                rows.size(),
                                launch_->accumulators[fields.to].width,
                                from.copy_bytes,
                                in_place};
      const ReducingThread thread{state_->peer.number, state_->peer.count};
      if (thread.count == threads() &&
          adds_by_warps<Element>(reduction, launch_->program.any_order, thread.count))
        reduce_by_warps<Element>(reduction, Cells{*this}, thread, barrier_at(inst));
      else
        reduce_in_order<Element>(reduction, Cells{*this}, thread);
    }
    settle(inst);  // the instructions that follow share rows, not elements
  }

  /// The Cells of reductions (see reduction.hpp): the elements of accumulators, wherever they lie.
  struct Cells {
    const ThreadMachine& machine;

    template <class Element>
    FVM_DEVICE Element* first_copy(const Reduction& reduction, std::uint32_t row,
                                   std::uint32_t column) const {
      return machine.template accumulator_row<Element>(reduction.from, reduction.first_copy,
                                                       reduction.first_row + row) +
             column;
    }
    template <class Element>
    FVM_DEVICE Element* sum(const Reduction& reduction, std::uint32_t row, std::uint32_t column) const {
      if (reduction.in_place) return first_copy<Element>(reduction, row, column);
      return machine.template accumulator_row<Element>(reduction.to, reduction.first_row + row) + column;
    }
  };

  FVM_DEVICE_COLD void store_others(std::uint32_t accumulator, Range rows) const {
    with_scores(accumulator, [&]<class Score>() {
      store_rows<Score>(accumulator, rows, launch_->pass.wide_values);
      store_rows<Score>(accumulator, rows, launch_->pass.values);
    });
  }
  // --- walks ---

  /// Describes the thread's walk. Returns false if the thread has nothing to walk.
  FVM_DEVICE bool set_walk(ThreadWalk& walk, std::uint32_t walker, const Range& select, const Range& trees,
                           const Range& rows) const {
    walk.trees = trees;
    walk.rows = kKnown ? ThreadRows{rows.begin, 1, 1} : rows_of_thread(rows);
    if (trees.begin == trees.end || walk.rows.count == 0) return false;
    walk.walker = kKnown ? &launch_->walker : launch_->program.walkers + (walker + select.iteration);
    const LaunchGroup& group = kKnown ? launch_->group : launch_->program.groups[walk.walker->group];
    walk.program = &launch_->program;
    walk.group = group.data;
    walk.staged = false;
    walk.first_tree = group.first_tree;
    if constexpr (kKnown) return true;
    if (launch_->copy_count == 0) return true;
    walk.trees = within(trees, launch_->pass.walked);
    interpreter().staged_trees.for_groups([&](const StagedGroup& staged) {
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
    const bool values = state_->staged_as == StagedAs::Values;
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
