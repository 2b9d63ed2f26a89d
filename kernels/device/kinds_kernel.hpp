// The kernel of kinds, which writes outputs other than scores: a phase in it is one instruction, for all rows of a
// pass. It is apart from the megakernel, so that walks have the registers that it takes. Blocks of grid.x share the
// rows, those of grid.y what there is to do for each row. Threads do not wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/device/add_leaves.hpp"
#include "kernels/device/explain_rows.hpp"
#include "kernels/device/kind_rows.hpp"
#include "kernels/device/quantile_rows.hpp"
#include "kernels/device/stop_early.hpp"
#include "kernels/device/uncertain_rows.hpp"
#include "kernels/link/kind_tables.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

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
      const Score leaf = kept_row<Score>(launch, from, row)[pass.added.begin + number / each];
      to[i] = static_cast<Value>(added_by_leaf(launch, row, number % each, leaf));
    }
  });
}

/// Adds the leaves of a row that add to an output, and writes the sum after each stage.
template <class Score, class Value>
FVM_DEVICE void store_stages_of(const Launch& launch, const LinkedInst& inst, std::uint32_t row,
                                std::uint32_t output, Value* to) {
  const LaunchProgram& program = launch.program;
  const LaunchPass& pass = launch.pass;
  const std::uint32_t outputs = program.num_outputs, stages = pass.value_width / outputs;
  const bool base_last = linked<Op::StoreStages, LinkedField::BaseLast>(inst) != 0;
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
    for (; next < trees.count && trees[next] < end; ++next)
      sum += added_by_leaf(launch, row, output, leaves[trees[next]]);
    *to = static_cast<Value>(base_last ? with_base(launch, row, output, sum) : sum);
  }
}

/// Adds what a row's leaves attribute to features, in the order of the trees, and writes the sums of the outputs that
/// the thread has.
template <class Score, class Value>
FVM_DEVICE void attribute_row(const Launch& launch, std::uint32_t row, Value* to) {
  const LaunchProgram& program = launch.program;
  const KindTables& tables = *program.kinds;
  const LaunchPass& pass = launch.pass;
  const std::uint32_t features = tables.num_features;
  const std::int32_t* const leaves = pass.leaves + std::size_t{row} * program.num_trees;
  FVM_NO_UNROLL
  for (std::uint32_t k = Device::index(1); k < program.num_outputs; k += Device::extent(1)) {
    const std::uint32_t first = k * (features + 1);
    const ThreadNumbers<Score> sums{
        reinterpret_cast<Score*>(pass.workspace) + std::size_t{first} * pass.row_count + row, pass.row_count};
    FVM_NO_UNROLL
    for (std::uint32_t f = 0; f < features; ++f) sums[f] = 0;
    const TreesOfOutput trees = trees_of_output(program, pass, k);
    FVM_NO_UNROLL
    for (std::uint32_t t = 0; t < trees.count; ++t) {
      const std::uint32_t tree = trees[t];
      const LeafList list = leaf_list(tables.attributed_trees[tree], tables.attributed_leaves, leaves[tree]);
      FVM_NO_UNROLL
      for (std::uint32_t a = list.begin; a < list.end; ++a) {
        const Attribution term = tables.attributions[a];
        // A leaf that is a vector has terms of other outputs, too.
        const std::uint32_t feature = term.index - first;
        if (feature < features) sums[feature] += static_cast<Score>(term.value);
      }
    }
    Value* const out = to + std::size_t{row} * pass.value_width + first;
    FVM_NO_UNROLL
    for (std::uint32_t f = 0; f < features; ++f) out[f] = static_cast<Value>(sums[f]);
    out[features] =
        static_cast<Value>(pass.base_stride == 0 ? tables.attribution_base[k]
                                                 : pass.base[std::size_t{row} * pass.base_stride + k]);
  }
}

/// Writes what is computed of the leaves of a row's trees in the model's order. Virtual ensembles and early stops have
/// scores of float64, as is verified and as calls are checked.
FVM_DEVICE void store_stages(const Launch& launch, const LinkedInst& inst, std::uint32_t row) {
  const std::uint32_t sums = linked<Op::StoreStages, LinkedField::AccOut>(inst);
  const std::uint32_t kept = linked<Op::StoreStages, LinkedField::AccIn>(inst);
  const bool wide = launch.accumulators[sums].kind == AccumulatorKind::F64;
  if (!is_of_trees(launch.pass.output)) {
    if (Device::index(1) == 0)
      stop_early(launch, kept_row<double>(launch, kept, row), row,
                 linked<Op::StoreStages, LinkedField::BaseLast>(inst) != 0,
                 kept_row<double>(launch, sums, row));
    return;
  }
  with_output(launch, wide, [&]<class Score>(auto* to) {
    if (launch.pass.output == OutputKind::Staged) {
      FVM_NO_UNROLL
      for (std::uint32_t k = Device::index(1); k < launch.program.num_outputs; k += Device::extent(1))
        store_stages_of<Score>(launch, inst, row, k, to);
    } else if (launch.program.kinds->uncertainty == UncertaintyRule::Trees) {
      store_spread(launch, kept_row<Score>(launch, kept, row), row, to);
    } else if constexpr (std::is_same_v<Score, double>) {  // verified: no others have virtual ensembles
      store_members(launch, kept_row<Score>(launch, kept, row), row, to);
    }
  });
}

FVM_DEVICE void run_kind(const Launch& launch) {
  const LinkedInst& inst = launch.code[0];
  const std::uint32_t threads = Device::extent(kGridDimensions), first = Device::index(0) * threads;
  const std::uint32_t row = first + Device::index(kGridDimensions), count = launch.pass.row_count;
  if (inst.op == Op::StoreTrees)
    return store_trees(launch, inst, first, count - first < threads ? count - first : threads);
  if (row >= count) return;
  if (inst.op == Op::StoreStages) return store_stages(launch, inst, row);
  if (inst.op == Op::Quantiles) {
    if (Device::index(1) != 0) return;
    if (launch.pass.wide_values != nullptr) return store_quantiles(launch, row, launch.pass.wide_values);
    return store_quantiles(launch, row, launch.pass.values);
  }
  if (inst.op == Op::Attribute)
    return with_output(launch, launch.program.kinds->wide_scores,
                       [&]<class Score>(auto* to) { attribute_row<Score>(launch, row, to); });
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
