// A thread's part of what its block does with sums: it begins them, adds copies and kept leaves, and turns them into
// the results of a call. Sums of float32, which most calls have, are handled inline, so that instructions read the
// launch from constant memory; other sums are function calls.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/interpret.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/core/transform.hpp>

#include "kernels/device/add_leaves.hpp"
#include "kernels/device/reduction.hpp"
#include "kernels/device/thread_state.hpp"
#include "kernels/device/thread_work.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// The instructions that begin, add or write sums.
class ThreadSums : public ThreadWork {
 public:
  using ThreadWork::ThreadWork;
  FVM_DEVICE explicit ThreadSums(const ThreadWork& work) : ThreadWork(work) {}

  FVM_DEVICE void init(const LinkedInst& inst) {
    const std::uint32_t accumulator = linked<Op::Init, LinkedField::AccOut>(inst);
    const Range rows = ranges[linked<Op::Init, LinkedField::Rows>(inst)];
    if (launch_->accumulators[accumulator].starts_alike)
      fill_rows<F32Sum>(accumulator, rows, launch_->pass.base, 0);
    else
      copy().init_others(accumulator, rows);
  }

  FVM_DEVICE void zero(const LinkedInst& inst) {
    clear(linked<Op::Zero, LinkedField::AccOut>(inst), ranges[linked<Op::Zero, LinkedField::Rows>(inst)]);
  }

  FVM_DEVICE void add_base(const LinkedInst& inst) const { copy().add_base_scores(inst); }

  FVM_DEVICE void privatize(const LinkedInst& inst) {
    const std::uint32_t accumulator = linked<Op::Privatize, LinkedField::AccOut>(inst);
    const LaunchAccumulator& to = launch_->accumulators[accumulator];
    const std::uint32_t iteration = ranges[linked<Op::Privatize, LinkedField::RangeIn>(inst)].iteration;
    // Before its copies lie those of the copies of its parent before its own one.
    state_->copies[accumulator] = iteration + state_->copies[to.parent] * to.iterations;
    if (to.stored_elsewhere || linked<Op::Privatize, LinkedField::Zeroed>(inst) != 0) return;
    clear(accumulator, ranges[linked<Op::Privatize, LinkedField::Rows>(inst)]);
  }

  FVM_DEVICE void reduce_dim(const LinkedInst& inst) const {
    const ReductionFields fields = reduction_fields<Op::ReduceDim>(inst);
    if (launch_->accumulators[fields.to].kind == AccumulatorKind::F32)
      reduce<F32Sum>(inst, fields, false);
    else
      copy().template reduce_others<Op::ReduceDim>(inst);
  }
  FVM_DEVICE void reduce_inplace(const LinkedInst& inst) const {
    copy().template reduce_others<Op::ReduceInplace>(inst);
  }

  FVM_DEVICE void round(const LinkedInst& inst) const { copy().round_sums_of_kind(inst); }
  FVM_DEVICE void sum_trees(const LinkedInst& inst) const { copy().add_trees_of_kind(inst); }
  FVM_DEVICE void transform(const LinkedInst& inst) const { copy().transform_rows(inst); }

  FVM_DEVICE void store(const LinkedInst& inst) const {
    const std::uint32_t accumulator = linked<Op::Store, LinkedField::AccIn>(inst);
    if (launch_->accumulators[accumulator].gives_values)
      for_rows(ranges[linked<Op::Store, LinkedField::Rows>(inst)], [&](std::uint32_t row) {
        launch_->pass.values[row] = *accumulator_row<float>(accumulator, row);
      });
    else if (launch_->accumulators[accumulator].kind == AccumulatorKind::F32 &&
             launch_->pass.wide_values == nullptr)
      store_rows<float>(accumulator, ranges[linked<Op::Store, LinkedField::Rows>(inst)],
                        launch_->pass.values);
    else
      copy().store_others(accumulator, ranges[linked<Op::Store, LinkedField::Rows>(inst)]);
  }
  FVM_DEVICE void label(const LinkedInst& inst) const { copy().label_rows(inst); }

 private:
  /// Returns a copy, on which functions that are not inlined are called.
  FVM_DEVICE ThreadSums copy() const { return ThreadSums(interpreted()); }

  FVM_DEVICE_COLD void add_base_scores(const LinkedInst& inst) {
    const std::uint32_t accumulator = linked<Op::AddBase, LinkedField::AccOut>(inst);
    const Range& rows = ranges[linked<Op::AddBase, LinkedField::Rows>(inst)];
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

  FVM_DEVICE_COLD void round_sums_of_kind(const LinkedInst& inst) {
    with_element(linked<Op::Round, LinkedField::AccIn>(inst), [&]<class Element>() {
      with_scores(linked<Op::Round, LinkedField::AccOut>(inst),
                  [&]<class Score>() { round_sums<Element, Score>(inst); });
    });
  }
  template <class Element, class Score>
  FVM_DEVICE void round_sums(const LinkedInst& inst) const {
    const std::uint32_t to = linked<Op::Round, LinkedField::AccOut>(inst),
                        from = linked<Op::Round, LinkedField::AccIn>(inst);
    for_rows(ranges[linked<Op::Round, LinkedField::Rows>(inst)], [&](std::uint32_t row) {
      const Element* const sums = accumulator_row<Element>(from, row);
      Score* const rounded = accumulator_row<Score>(to, row);
      FVM_NO_UNROLL
      for (std::uint32_t k = 0; k < launch_->program.num_outputs; ++k)
        rounded[k] = sums[k].template rounded<Score>(launch_->program.scale);
    });
  }

  FVM_DEVICE_COLD void add_trees_of_kind(const LinkedInst& inst) {
    with_scores(linked<Op::SumTrees, LinkedField::AccOut>(inst),
                [&]<class Score>() { add_trees<Score>(inst); });
  }
  /// Adds the leaves of rows. Threads share sums and not rows, because the trees of an output follow each other.
  template <class Score>
  FVM_DEVICE void add_trees(const LinkedInst& inst) const {
    settle(inst);
    state_->unsettled = true;
    if (state_->idle == 0) {
      const std::uint32_t to = linked<Op::SumTrees, LinkedField::AccOut>(inst);
      const std::uint32_t from = linked<Op::SumTrees, LinkedField::AccIn>(inst);
      const Range rows = ranges[linked<Op::SumTrees, LinkedField::Rows>(inst)];
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
    const std::uint32_t accumulator = linked<Op::Transform, LinkedField::AccOut>(inst);
    const auto kind = static_cast<Transform>(linked<Op::Transform, LinkedField::TransformKind>(inst));
    with_scores(accumulator, [&]<class Score>() {
      for_rows(ranges[linked<Op::Transform, LinkedField::Rows>(inst)],
               [&](std::uint32_t row) { transform_scores(kind, accumulator_row<Score>(accumulator, row)); });
    });
  }

  FVM_DEVICE_COLD void label_rows(const LinkedInst& inst) {
    if (launch_->pass.labels == nullptr) return;
    const std::uint32_t accumulator = linked<Op::Label, LinkedField::AccIn>(inst);
    const auto rule = static_cast<ClassRule>(linked<Op::Label, LinkedField::Rule>(inst));
    const LaunchProgram& program = launch_->program;
    const std::uint32_t width = label_width(rule, program.num_outputs, program.parameters.group_ends);
    with_scores(accumulator, [&]<class Score>() {
      for_rows(ranges[linked<Op::Label, LinkedField::Rows>(inst)], [&](std::uint32_t row) {
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

  // --- elements ---

  /// Sets the rows of an accumulator to zero.
  FVM_DEVICE void clear(std::uint32_t accumulator, Range rows) const {
    if (launch_->accumulators[accumulator].kind == AccumulatorKind::F32)
      zero_rows<F32Sum>(accumulator, rows);
    else
      copy().clear_others(accumulator, rows);
  }
  FVM_DEVICE_COLD void clear_others(std::uint32_t accumulator, Range rows) const {
    with_element(accumulator, [&]<class Element>() { zero_rows<Element>(accumulator, rows); });
  }
  FVM_DEVICE_COLD void init_others(std::uint32_t accumulator, Range rows) const {
    with_element(accumulator, [&]<class Element>() {
      fill_rows<Element>(accumulator, rows, launch_->pass.base, launch_->pass.base_stride);
    });
  }
  template <Op op>
  FVM_DEVICE_COLD void reduce_others(const LinkedInst& inst) const {
    const ReductionFields fields = reduction_fields<op>(inst);
    with_element(fields.to, [&]<class Element>() { reduce<Element>(inst, fields, op == Op::ReduceInplace); });
  }
  template <class Element>
  FVM_DEVICE void reduce(const LinkedInst& inst, const ReductionFields& fields, bool in_place) const {
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
    const ThreadSums& sums;

    template <class Element>
    FVM_DEVICE Element* first_copy(const Reduction& reduction, std::uint32_t row,
                                   std::uint32_t column) const {
      return sums.accumulator_row<Element>(reduction.from, reduction.first_copy, reduction.first_row + row) +
             column;
    }
    template <class Element>
    FVM_DEVICE Element begin(const Reduction& reduction, std::uint32_t row, std::uint32_t column) const {
      return *sum<Element>(reduction, row, column);
    }
    template <class Element>
    FVM_DEVICE void end(const Reduction& reduction, std::uint32_t row, std::uint32_t column,
                        const Element& total) const {
      *sum<Element>(reduction, row, column) = total;
    }

   private:
    template <class Element>
    FVM_DEVICE Element* sum(const Reduction& reduction, std::uint32_t row, std::uint32_t column) const {
      if (reduction.in_place) return first_copy<Element>(reduction, row, column);
      return sums.accumulator_row<Element>(reduction.to, reduction.first_row + row) + column;
    }
  };

  FVM_DEVICE_COLD void store_others(std::uint32_t accumulator, Range rows) const {
    with_scores(accumulator, [&]<class Score>() {
      store_rows<Score>(accumulator, rows, launch_->pass.wide_values);
      store_rows<Score>(accumulator, rows, launch_->pass.values);
    });
  }
};

}  // namespace forestvm::kernels
