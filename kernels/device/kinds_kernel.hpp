// The kernel of kinds, which writes outputs other than scores: a phase in it is one instruction, for all rows of a
// pass. It is apart from the megakernel, so that walks have the registers that it takes. Blocks of grid.x share the
// rows, those of grid.y what there is to do for each row. Threads do not wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <forestvm/core/leaf_vectors.hpp>
#include <forestvm/core/sums.hpp>

#include "kernels/device/add_leaves.hpp"
#include "kernels/device/explain_rows.hpp"
#include "kernels/link/kind_tables.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// Returns a row of an accumulator, which lies in global memory and has one copy.
template <class T>
FVM_DEVICE T* kept_row(const Launch& launch, std::uint32_t accumulator, std::uint32_t row) {
  const LaunchAccumulator& a = launch.accumulators[accumulator];
  return reinterpret_cast<T*>(a.memory + std::size_t{row} * a.row_bytes);
}

/// Calls visit.operator()<Score>(to) with the type of scores that `wide` says and the memory of the output.
template <class Visit>
FVM_DEVICE void with_output(const Launch& launch, bool wide, const Visit& visit) {
  const auto with_scores = [&](auto* to) {
    if (wide)
      visit.template operator()<double>(to);
    else
      visit.template operator()<float>(to);
  };
  if (launch.pass.wide_values != nullptr)
    with_scores(launch.pass.wide_values);
  else
    with_scores(launch.pass.values);
}

/// Writes the leaf's output of each tree of the call: those of a block's rows one after the other.
FVM_DEVICE void store_trees(const Launch& launch, const LinkedInst& inst, std::uint32_t first,
                            std::uint32_t rows) {
  const std::uint32_t from = linked<Op::StoreTrees, LinkedField::AccIn>(inst);
  const LaunchProgram& program = launch.program;
  const LaunchPass& pass = launch.pass;
  const std::uint32_t each = program.vectors.count == 0 ? 1 : program.num_outputs, width = pass.value_width;
  const std::size_t threads = Device::extent(kGridDimensions), end = std::size_t{rows} * width;
  const bool wide = launch.accumulators[from].kind == AccumulatorKind::PerTree64;
  with_output(launch, wide, [&]<class Score>(auto* to) {
    using Value = std::remove_reference_t<decltype(*to)>;
    to += std::size_t{first} * width;
    FVM_NO_UNROLL
    for (std::size_t i = Device::index(1) * threads + Device::index(kGridDimensions); i < end;
         i += Device::extent(1) * threads) {
      const auto row = first + static_cast<std::uint32_t>(i / width);
      const auto number = static_cast<std::uint32_t>(i % width);
      Score leaf = kept_row<Score>(launch, from, row)[pass.added.begin + number / each];
      if (program.vectors.count != 0) leaf = leaf_vector(program.vectors, leaf)[number % each];
      if constexpr (std::is_same_v<Score, double>)
        if (program.functions.count != 0) leaf = function_output(program, pass, row, leaf);
      to[i] = static_cast<Value>(leaf);
    }
  });
}

/// Adds the leaves of a row that add to an output, and writes the sum after each stage.
template <class Score, class Value>
FVM_DEVICE void store_stages_of(const Launch& launch, const LinkedInst& inst, std::uint32_t row,
                                std::uint32_t output, Value* to) {
  using Sum = RoundedSum<Score>;
  const LaunchProgram& program = launch.program;
  const LaunchPass& pass = launch.pass;
  const std::uint32_t outputs = program.num_outputs, stages = pass.value_width / outputs;
  const bool base_last = linked<Op::StoreStages, LinkedField::BaseLast>(inst) != 0;
  const double base = pass.base[std::size_t{row} * pass.base_stride + output];
  const Score* const leaves = kept_row<Score>(launch, linked<Op::StoreStages, LinkedField::AccIn>(inst), row);
  Score sum = kept_row<Score>(launch, linked<Op::StoreStages, LinkedField::AccOut>(inst), row)[output];
  const TreesOfOutput trees = trees_of_output(program, pass, output);
  std::uint32_t next = 0, round = pass.first_round;
  to += std::size_t{row} * pass.value_width + output;
  FVM_NO_UNROLL
  for (std::uint32_t stage = 0; stage < stages; ++stage, to += outputs) {
    round = pass.every < pass.end_round - round ? round + pass.every : pass.end_round;
    const std::uint32_t end = program.kinds->round_begins[round];
    FVM_NO_UNROLL
    for (; next < trees.count && trees[next] < end; ++next) {
      const Score leaf = leaves[trees[next]];
      if (program.vectors.count != 0) {
        sum += leaf_vector(program.vectors, leaf)[output];
        continue;
      }
      if constexpr (std::is_same_v<Score, double>)
        if (program.functions.count != 0) {
          sum += function_output(program, pass, row, leaf);
          continue;
        }
      sum += leaf;
    }
    Sum score{sum};
    if (base_last) {
      if (program.score_scale != 1) score.value *= static_cast<Score>(program.score_scale);
      forestvm::add_base(score, base, program.scale);
    }
    *to = static_cast<Value>(score.value);
  }
}

FVM_DEVICE void run_kind(const Launch& launch) {
  const LinkedInst& inst = launch.code[0];
  const std::uint32_t threads = Device::extent(kGridDimensions), first = Device::index(0) * threads;
  const std::uint32_t row = first + Device::index(kGridDimensions), count = launch.pass.row_count;
  if (inst.op == Op::StoreTrees)
    return store_trees(launch, inst, first, count - first < threads ? count - first : threads);
  if (row >= count) return;
  if (inst.op == Op::StoreStages) {
    const std::uint32_t to_kind = linked<Op::StoreStages, LinkedField::AccOut>(inst);
    with_output(
        launch, launch.accumulators[to_kind].kind == AccumulatorKind::F64, [&]<class Score>(auto* to) {
          FVM_NO_UNROLL
          for (std::uint32_t k = Device::index(1); k < launch.program.num_outputs; k += Device::extent(1))
            store_stages_of<Score>(launch, inst, row, k, to);
        });
    return;
  }
  const auto part = static_cast<ExplainPart>(linked<Op::Explain, LinkedField::Part>(inst));
  const bool wide = launch.program.kinds->wide;
  if (part == ExplainPart::Write)
    return with_output(launch, wide,
                       [&]<class Number>(auto* to) { write_contributions<Number>(launch, row, to); });
  if (wide)
    sum_batches<double>(launch, part, row);
  else
    sum_batches<float>(launch, part, row);
}

}  // namespace forestvm::kernels
