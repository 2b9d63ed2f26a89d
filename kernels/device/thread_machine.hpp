// The machine of one GPU thread: what interpret() runs a phase of a program on, in every thread of a launch at
// once. A map gives each thread an iteration of its own. Code outside the maps of some dimensions of the block is
// shared by the threads that differ in those dimensions only: thread i of n such threads takes the rows whose
// numbers are i modulo n. A thread without an iteration goes through the code idly, because it must come to the
// barriers.
//
// Barriers stand where what threads have written may next be read by others: where a map of the block begins
// and ends, around reductions, and around copies into shared memory. All threads run the same instructions,
// so that all agree on whether one is due.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/core/transform.hpp>

#include "kernels/device/encode_row.hpp"
#include "kernels/device/reduction.hpp"
#include "kernels/device/stage.hpp"
#include "kernels/device/stage_trees.hpp"
#include "kernels/device/walk.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// The layouts that a kernel walks.
template <class... Views>
struct LayoutList {};

/// Calls visit.operator()<View>() with a layout's view, if the list has it.
template <class... Views, class Visit>
FVM_DEVICE void with_listed_view(LayoutList<Views...>, Layout layout, Visit&& visit) {
  with_view(layout, [&]<class View>() {
    if constexpr ((std::is_same_v<View, Views> || ...)) visit.template operator()<View>();
  });
}

template <class Listed>
class ThreadMachine {
 public:
  using enum LinkedField;

  static constexpr bool kRunsInStep = true;

  /// The range registers. Verified code reads none of them before it sets it.
  class Registers {
   public:
    FVM_DEVICE Range& operator[](std::uint32_t number) { return reinterpret_cast<Range*>(bytes_)[number]; }
    FVM_DEVICE const Range& operator[](std::uint32_t number) const {
      return reinterpret_cast<const Range*>(bytes_)[number];
    }

   private:
    alignas(Range) std::byte bytes_[kRangeRegisters * sizeof(Range)];
  };

  Registers ranges;

  FVM_DEVICE explicit ThreadMachine(const Launch& launch) : launch_(&launch), staged_trees_(launch) {
    ranges[kRowsRegister] = {0, launch.pass.row_count, 0};
    if (launch.rows_per_block != 0)
      ranges[kRowsRegister] =
          slice(ranges[kRowsRegister], launch.rows_per_block * index(LaunchDimension::GridX),
                launch.rows_per_block * (index(LaunchDimension::GridX) + 1));
    ranges[kTreesRegister] = {0, launch.program.num_trees, 0};
    share_work();
    if (StagedTrees::make_barriers(launch, block_thread())) Device::sync(kMaxPhaseCode);
  }

  FVM_DEVICE bool wants(OutputKind output) const { return launch_->pass.output == output; }

  FVM_DEVICE bool first(const LinkedInst& loop) {
    set_chunk(loop_operands<Op::For>(loop), 0);
    return linked<Op::For, Iterations>(loop) != 0;
  }

  FVM_DEVICE bool next(const LinkedInst& loop) {
    const LoopOperands operands = loop_operands<Op::For>(loop);
    const std::uint32_t iteration = ranges[operands.out].iteration + 1;
    if (iteration == linked<Op::For, Iterations>(loop)) return false;
    set_chunk(operands, iteration);
    return true;
  }

  FVM_DEVICE void enter(const LinkedInst& loop) {
    const std::uint32_t dimension = linked<Op::Map, Dimension>(loop);
    if (dimension >= kGridDimensions) settle(loop);
    const LoopOperands operands = loop_operands<Op::Map>(loop);
    const std::uint32_t iteration = Device::index(dimension);
    set_chunk(operands, iteration);
    if (idle_ != 0 || ranges[operands.out].size() == 0) ++idle_;
    mapped_ |= 1u << dimension;
    if (dimension >= kGridDimensions) share_work();
  }

  FVM_DEVICE void leave(const LinkedInst& loop) {
    const std::uint32_t dimension = linked<Op::Map, Dimension>(loop);
    if (dimension >= kGridDimensions) settle(loop);
    if (idle_ != 0) --idle_;
    mapped_ &= ~(1u << dimension);
    if (dimension >= kGridDimensions) share_work();
  }

  FVM_DEVICE_COLD void cache_rows(const LinkedInst& inst) {
    const std::uint32_t stride = linked<Op::CacheRows, Stride>(inst);
    if (stride == 0) return;  // nothing is kept: walks read global memory
    sync_block(inst);
    const Range rows = ranges[linked<Op::CacheRows, Rows>(inst)];
    std::byte* const to = Device::shared() + linked<Op::CacheRows, Offset>(inst);
    staged_rows_ = {Device::shared_address(to), rows.begin, stride};
    staged_rows_end_ = rows.end;
    staged_as_ = static_cast<StagedAs>(linked<Op::CacheRows, Staged>(inst));
    if (staged_as_ == StagedAs::Values)
      stage_rows(*launch_, rows, stride, reinterpret_cast<float*>(to), block_thread());
    else if (staged_as_ == StagedAs::Codes || launch_->pass.encode_to == nullptr)
      stage_codes(*launch_, rows, stride, reinterpret_cast<std::uint32_t*>(to), block_thread());
    sync_block(inst);
  }

  /// Copies trees into shared memory. Trees that are copied ahead go to two buffers, one after the other: when those of
  /// an iteration have arrived, all threads have left the other buffer, and the trees of the next iteration are on
  /// their way there.
  FVM_DEVICE_COLD void cache_trees(const LinkedInst& inst) {
    const std::uint32_t number = linked<Op::CacheTrees, Copy>(inst);
    const LaunchCopy& copy = launch_->copies[number];
    const Range trees = ranges[linked<Op::CacheTrees, Trees>(inst)];
    if (!copy.ahead) sync_block(inst);
    if (!copy.ahead || trees.iteration == 0) staged_trees_.begin(*launch_, inst, trees, block_thread());
    staged_trees_.finish(*launch_, number, barrier_at(inst));
    sync_block(inst);
    if (copy.ahead)
      staged_trees_.begin(*launch_, inst, chunk_of(ranges[copy.in], copy.step, trees.iteration + 1),
                          block_thread());
  }

  FVM_DEVICE void init(const LinkedInst& inst) {
    fill(linked<Op::Init, AccOut>(inst), ranges[linked<Op::Init, Rows>(inst)], launch_->program.base);
  }

  FVM_DEVICE void zero(const LinkedInst& inst) {
    fill(linked<Op::Zero, AccOut>(inst), ranges[linked<Op::Zero, Rows>(inst)], nullptr);
  }

  FVM_DEVICE_COLD void add_base(const LinkedInst& inst) {
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
        FVM_NO_UNROLL
        for (std::uint32_t k = 0; k < program.num_outputs; ++k)
          forestvm::add_base(sums[k], program.base[k], program.scale);
      });
    });
  }

  FVM_DEVICE void privatize(const LinkedInst& inst) {
    const std::uint32_t accumulator = linked<Op::Privatize, AccOut>(inst);
    const LaunchAccumulator& to = launch_->accumulators[accumulator];
    const std::uint32_t iteration = ranges[linked<Op::Privatize, RangeIn>(inst)].iteration;
    copies_[accumulator] = copies_[to.parent] * to.iterations + iteration;
    if (to.stored_elsewhere || linked<Op::Privatize, Zeroed>(inst) != 0) return;
    fill(accumulator, ranges[linked<Op::Privatize, Rows>(inst)], nullptr);
  }

  FVM_DEVICE_COLD void encode(const LinkedInst& inst) {
    const LaunchProgram& program = launch_->program;
    const LaunchPass& pass = launch_->pass;
    if (pass.encode_to == nullptr) return;
    for_rows(ranges[linked<Op::Encode, Rows>(inst)], [&](std::uint32_t row) {
      const float* const values = pass.rows + row * pass.row_stride;
      if (const std::uint32_t stride = linked<Op::Encode, Stride>(inst); stride != 0) {
        auto* const words =
            reinterpret_cast<std::uint32_t*>(Device::shared() + linked<Op::Encode, Offset>(inst)) +
            (row - staged_rows_.first);
        encode_row(program, values, [&](std::uint32_t column, std::uint8_t code) {
          words[column * stride] = std::uint32_t{code} << StagedCodes::kShift;
        });
      } else {
        std::uint8_t* const codes = pass.encode_to + code_offset(row, program.column_count);
        encode_row(program, values, [&](std::uint32_t column, std::uint8_t code) {
          codes[std::size_t{column} * kCodeRows] = code;
        });
      }
    });
  }

  FVM_DEVICE void walk(const LinkedInst& inst) {
    const std::uint32_t accumulator = linked<Op::Walk, AccOut>(inst);
    unsettled_ = true;
    if (idle_ != 0) return;
    ThreadWalk walk;
    if (!set_walk(walk, linked<Op::Walk, Walker>(inst), ranges[linked<Op::Walk, Select>(inst)],
                  ranges[linked<Op::Walk, Trees>(inst)], ranges[linked<Op::Walk, Rows>(inst)]))
      return;
    walk.width = launch_->accumulators[accumulator].width;
    walk.out_row = walk.rows.first;
    with_element(accumulator, [&]<class Element>() {
      walk.out = reinterpret_cast<std::byte*>(accumulator_row<Element>(accumulator, walk.out_row));
    });
    walk.delivery = delivery_of(launch_->accumulators[accumulator].kind);
    with_rows(walk, [&]<class View>(const auto& rows_at) { walk_rows<View>(walk, rows_at); });
  }

  FVM_DEVICE_COLD void leaves(const LinkedInst& inst) {
    unsettled_ = true;
    if (idle_ != 0 || launch_->pass.leaves == nullptr) return;
    ThreadWalk walk;
    if (!set_walk(walk, linked<Op::Leaves, Walker>(inst), ranges[linked<Op::Leaves, Select>(inst)],
                  ranges[linked<Op::Leaves, Trees>(inst)], ranges[linked<Op::Leaves, Rows>(inst)]))
      return;
    walk.width = launch_->program.num_trees;
    walk.out_row = 0;
    walk.out = reinterpret_cast<std::byte*>(launch_->pass.leaves);
    walk.delivery = Delivery::LeafNumber;
    with_rows(walk, [&]<class View>(const auto& rows_at) { deliver_leaves<View>(walk, rows_at); });
  }

  FVM_DEVICE void reduce_dim(const LinkedInst& inst) { reduce(inst, false); }
  FVM_DEVICE void reduce_inplace(const LinkedInst& inst) { reduce(inst, true); }

  FVM_DEVICE_COLD void round(const LinkedInst& inst) {
    const std::uint32_t to = linked<Op::Round, AccOut>(inst);
    const std::uint32_t from = linked<Op::Round, AccIn>(inst);
    with_element(from, [&]<class Element>() {
      with_scores(to, [&]<class Score>() {
        for_rows(ranges[linked<Op::Round, Rows>(inst)], [&](std::uint32_t row) {
          const Element* const sums = accumulator_row<Element>(from, row);
          Score* const rounded = accumulator_row<Score>(to, row);
          FVM_NO_UNROLL
          for (std::uint32_t k = 0; k < launch_->program.num_outputs; ++k)
            rounded[k] = sums[k].template rounded<Score>(launch_->program.scale);
        });
      });
    });
  }

  FVM_DEVICE_COLD void sum_trees(const LinkedInst& inst) {
    const std::uint32_t to = linked<Op::SumTrees, AccOut>(inst);
    const std::uint32_t from = linked<Op::SumTrees, AccIn>(inst);
    const LaunchProgram& program = launch_->program;
    with_scores(to, [&]<class Score>() {
      for_rows(ranges[linked<Op::SumTrees, Rows>(inst)], [&](std::uint32_t row) {
        const Score* const leaves = accumulator_row<Score>(from, row);
        Score* const sums = accumulator_row<Score>(to, row);
        if (program.vectors.count != 0) {
          FVM_NO_UNROLL
          for (std::uint32_t t = 0; t < program.num_trees; ++t)
            add_vector(sums, leaf_vector(program.vectors, leaves[t]), program.vectors.width);
          return;
        }
        if constexpr (std::is_same_v<Score, double>)
          if (program.functions.count != 0) return add_functions(leaves, row, sums);
        FVM_NO_UNROLL
        for (std::uint32_t t = 0; t < program.num_trees; ++t) sums[program.tree_outputs[t]] += leaves[t];
      });
    });
  }

  FVM_DEVICE_COLD void transform(const LinkedInst& inst) {
    const std::uint32_t accumulator = linked<Op::Transform, AccOut>(inst);
    const auto kind = static_cast<Transform>(linked<Op::Transform, TransformKind>(inst));
    with_scores(accumulator, [&]<class Score>() {
      for_rows(ranges[linked<Op::Transform, Rows>(inst)],
               [&](std::uint32_t row) { transform_scores(kind, accumulator_row<Score>(accumulator, row)); });
    });
  }

  FVM_DEVICE_COLD void store(const LinkedInst& inst) {
    const std::uint32_t accumulator = linked<Op::Store, AccIn>(inst);
    const Range& rows = ranges[linked<Op::Store, Rows>(inst)];
    if (launch_->pass.wide_values != nullptr) store_rows(accumulator, rows, launch_->pass.wide_values);
    if (launch_->pass.values != nullptr) store_rows(accumulator, rows, launch_->pass.values);
  }

  FVM_DEVICE_COLD void label(const LinkedInst& inst) {
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

 private:
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

  /// Adds the outputs of the functions of a row's leaves to the row's sums. It is not inlined, so that other
  /// programs do without its registers.
  FVM_DEVICE_COLD void add_functions(const double* leaves, std::uint32_t row, double* sums) {
    const LaunchProgram& program = launch_->program;
    const LaunchPass& pass = launch_->pass;
    const double* const values = pass.leaf_values;
    const auto value_of = [&](const IndexedTerm& term) {
      if (values != nullptr) return values[std::size_t{row} * program.functions.features + term.index];
      const auto x = static_cast<double>(pass.rows[row * pass.row_stride + term.feature]);
      return x >= -kTiny && x <= kTiny ? 0.0 : x;
    };
    FVM_NO_UNROLL
    for (std::uint32_t t = 0; t < program.num_trees; ++t)
      sums[program.tree_outputs[t]] += leaf_output(program.functions, leaves[t], value_of);
  }

  // --- how threads share work ---

  /// Numbers the threads of the block that are in the same iterations: sets peer_, and their number peers_.
  FVM_DEVICE void share_work() {
    peer_ = 0;
    peers_ = 1;
    for (unsigned dimension = kDimensions; dimension-- > kGridDimensions;) {
      if ((mapped_ >> dimension & 1) != 0) continue;
      peer_ = peer_ * Device::extent(dimension) + Device::index(dimension);
      peers_ *= Device::extent(dimension);
    }
  }

  FVM_DEVICE static std::uint32_t index(LaunchDimension dimension) {
    return Device::index(static_cast<unsigned>(dimension));
  }
  FVM_DEVICE static std::uint32_t extent(LaunchDimension dimension) {
    return Device::extent(static_cast<unsigned>(dimension));
  }

  FVM_DEVICE BlockThread block_thread() const {
    using enum LaunchDimension;
    return {(index(BlockZ) * extent(BlockY) + index(BlockY)) * extent(BlockX) + index(BlockX), threads()};
  }
  FVM_DEVICE std::uint32_t threads() const {
    using enum LaunchDimension;
    return extent(BlockX) * extent(BlockY) * extent(BlockZ);
  }

  /// Waits for all threads of the block, which must all come to this instruction.
  FVM_DEVICE void sync_block(const LinkedInst& inst) {
    Device::sync(barrier_at(inst));
    unsettled_ = false;
  }

  /// Returns the number of the barrier that stands at an instruction: its pc.
  FVM_DEVICE std::uint32_t barrier_at(const LinkedInst& inst) const {
    return static_cast<std::uint32_t>(&inst - launch_->code);
  }

  /// Makes what threads have written visible to all threads of the block.
  FVM_DEVICE void settle(const LinkedInst& inst) {
    if (unsettled_) sync_block(inst);
  }

  /// Returns the chunk of an iteration; an empty chunk if the iteration lies past the end of the range.
  FVM_DEVICE static Range chunk_of(const Range& over, std::uint32_t step, std::uint32_t iteration) {
    const std::uint32_t size = over.size();
    const std::uint64_t begin = std::uint64_t{iteration} * step;
    const std::uint32_t from = begin < size ? static_cast<std::uint32_t>(begin) : size;
    const std::uint32_t to = size - from > step ? from + step : size;
    return {over.begin + from, over.begin + to, iteration};
  }
  FVM_DEVICE void set_chunk(const LoopOperands& loop, std::uint32_t iteration) {
    ranges[loop.out] = chunk_of(ranges[loop.in], loop.step, iteration);
  }

  /// Returns the thread's part of these rows.
  FVM_DEVICE ThreadRows rows_of_thread(const Range& rows) const {
    if (peers_ == 1) return {rows.begin, 1, rows.size()};
    const std::uint32_t first = rows.begin + (peer_ + peers_ - rows.begin % peers_) % peers_;
    return {first, peers_, first < rows.end ? (rows.end - first - 1) / peers_ + 1 : 0};
  }

  template <class Visit>
  FVM_DEVICE void for_rows(const Range& range, const Visit& visit) {
    unsettled_ = true;
    if (idle_ != 0) return;
    const ThreadRows rows = rows_of_thread(range);
    FVM_NO_UNROLL
    for (std::uint32_t i = 0; i < rows.count; ++i) visit(rows[i]);
  }

  // --- sums ---

  template <class Element>
  FVM_DEVICE Element* accumulator_row(std::uint32_t accumulator, std::uint32_t copy,
                                      std::uint32_t row) const {
    const LaunchAccumulator& a = launch_->accumulators[accumulator];
    const bool shared = a.memory == nullptr;
    std::byte* const memory = shared ? Device::shared() + a.offset : a.memory;
    const std::size_t at = shared ? row - ranges[launch_->block_rows].begin : row;
    return reinterpret_cast<Element*>(memory) +
           (std::size_t{copy} * a.copy_stride * a.copy_rows + at) * a.width;
  }
  template <class Element>
  FVM_DEVICE Element* accumulator_row(std::uint32_t accumulator, std::uint32_t row) const {
    return accumulator_row<Element>(accumulator, copies_[accumulator], row);
  }

  template <class Visit>
  FVM_DEVICE void with_element(std::uint32_t accumulator, Visit&& visit) const {
    switch (launch_->accumulators[accumulator].kind) {
#define FVM_ACCUMULATOR_KIND(number, Name, text, Element, meaning) \
  case AccumulatorKind::Name:                                      \
    return visit.template operator()<Element>();
#include <forestvm/core/accumulator_kinds.def>
    }
  }

  template <class Visit>
  FVM_DEVICE void with_scores(std::uint32_t accumulator, Visit&& visit) const {
    if (launch_->accumulators[accumulator].kind == AccumulatorKind::F64)
      visit.template operator()<double>();
    else
      visit.template operator()<float>();
  }

  /// Sets the rows of an accumulator to `values`, one for each output; null: to zero.
  FVM_DEVICE_COLD void fill(std::uint32_t accumulator, const Range& rows, const double* values) {
    const std::uint32_t width = launch_->accumulators[accumulator].width;
    with_element(accumulator, [&]<class Element>() {
      for_rows(rows, [&](std::uint32_t row) {
        Element* const sums = accumulator_row<Element>(accumulator, row);
        FVM_NO_UNROLL
        for (std::uint32_t k = 0; k < width; ++k)
          sums[k] = values == nullptr ? Element{} : Element::of(values[k], launch_->program.scale);
      });
    });
  }

  FVM_DEVICE_COLD void reduce(const LinkedInst& inst, bool in_place) {
    settle(inst);
    unsettled_ = true;
    if (idle_ == 0) {
      const ReductionFields fields =
          in_place ? reduction_fields<Op::ReduceInplace>(inst) : reduction_fields<Op::ReduceDim>(inst);
      const std::uint32_t to = fields.to;
      const Range& rows = ranges[fields.rows];
      const std::uint32_t width = launch_->accumulators[to].width;
      const Reduction reduction{to,
                                fields.from,
                                copies_[to] * launch_->accumulators[fields.from].iterations,
                                iterations(ranges[fields.reduced].size(), fields.step),
                                rows.begin,
                                width,
                                std::uint64_t{rows.size()} * width,
                                in_place};
      with_element(to, [&]<class Element>() {
        if (peers_ == threads() && adds_by_warps<Element>(reduction, launch_->program.any_order, peers_))
          reduce_by_warps<Element>(reduction, Cells{*this}, {peer_, peers_}, barrier_at(inst));
        else
          reduce_in_order<Element>(reduction, Cells{*this}, {peer_, peers_});
      });
    }
    settle(inst);  // the instructions that follow share rows, not elements
  }

  /// The Cells of reductions (see reduction.hpp): the elements of accumulators, wherever they lie.
  struct Cells {
    const ThreadMachine& machine;

    template <class Element>
    FVM_DEVICE Element& copied(const Reduction& reduction, std::uint32_t copy, std::uint64_t element) const {
      return machine.template accumulator_row<Element>(reduction.from, reduction.first_copy + copy,
                                                       reduction.row(element))[reduction.column(element)];
    }
    template <class Element>
    FVM_DEVICE Element& sum(const Reduction& reduction, std::uint64_t element) const {
      if (reduction.in_place) return copied<Element>(reduction, 0, element);
      return machine.template accumulator_row<Element>(reduction.to,
                                                       reduction.row(element))[reduction.column(element)];
    }
  };

  template <class Value>
  FVM_DEVICE void store_rows(std::uint32_t accumulator, const Range& range, Value* values) {
    const LaunchProgram& program = launch_->program;
    const bool raw = wants(OutputKind::Raw);
    const Pair pair = raw ? Pair::None : program.pair;
    const std::uint32_t width =
        raw ? program.num_outputs : value_width(program.transform, pair, program.num_outputs);
    with_scores(accumulator, [&]<class Score>() {
      for_rows(range, [&](std::uint32_t row) {
        const Score* const scores = accumulator_row<Score>(accumulator, row);
        FVM_NO_UNROLL
        for (std::uint32_t k = 0; k < width; ++k)
          values[std::size_t{row} * width + k] = static_cast<Value>(value_of(pair, scores, k));
      });
    });
  }

  // --- walks ---

  /// Describes the thread's walk. Returns false if the thread has nothing to walk.
  FVM_DEVICE bool set_walk(ThreadWalk& walk, std::uint32_t walker, const Range& select, const Range& trees,
                           const Range& rows) const {
    walk.trees = trees;
    walk.rows = rows_of_thread(rows);
    if (trees.size() == 0 || walk.rows.count == 0) return false;
    walk.walker = launch_->program.walkers + walker + select.iteration;
    const LaunchGroup& group = launch_->program.groups[walk.walker->group];
    walk.group = group.data;
    walk.home = &group.data;
    walk.staged = false;
    walk.first_tree = group.first_tree;
    walk.scale = launch_->program.scale;
    staged_trees_.for_groups([&](const StagedGroup& staged) {
      if (staged.group != walk.walker->group || staged.begin > trees.begin || trees.end > staged.end) return;
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
    const bool there = staged_rows_.first <= walk.rows.first && last < staged_rows_end_;
    const bool values = staged_as_ == StagedAs::Values;
    with_listed_view(Listed{}, launch_->program.groups[walk.walker->group].layout, [&]<class View>() {
      if constexpr (kTakesCodes<View>) {
        if (there && !values)
          visit.template operator()<View>(
              StagedCodes{staged_rows_.address, staged_rows_.first, staged_rows_.stride});
        else
          visit.template operator()<View>(CodedTiles{pass.codes, launch_->program.column_count});
      } else if (there && values) {
        visit.template operator()<View>(staged_rows_);
      } else {
        visit.template operator()<View>(GlobalRows{pass.rows, pass.row_stride});
      }
    });
  }

  const Launch* launch_;
  std::uint32_t copies_[kAccumulators] = {};  ///< number of the copy that the thread writes, by accumulator
  std::uint32_t mapped_ = 0;                  ///< bit d is set inside a map of dimension d
  std::uint32_t idle_ = 0;  ///< number of open maps, from the first one in which the thread has no iteration
  /// the thread's number among the threads that share work, and their number
  std::uint32_t peer_ = 0, peers_ = 1;
  bool unsettled_ = false;  ///< true if threads may have written or read since the last barrier
  StagedRows staged_rows_{};
  std::uint32_t staged_rows_end_ = 0;
  StagedAs staged_as_ = StagedAs::Values;
  StagedTrees staged_trees_;
};

}  // namespace forestvm::kernels
