// Adds trees to a row's scores until these are decided, as LightGBM's early stop of predictions does, and writes what a
// call asks for: raw scores, values or labels.
#pragma once

#include <cstddef>
#include <cstdint>

#include <forestvm/core/early_stop.hpp>
#include <forestvm/core/transform.hpp>

#include "kernels/device/add_leaves.hpp"
#include "kernels/device/kind_rows.hpp"
#include "kernels/link/kind_tables.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// Adds the leaves of a row's trees to the sums, until the scores are decided after some rounds.
FVM_DEVICE void add_until_decided(const Launch& launch, const double* leaves, std::uint32_t row,
                                  double* sums) {
  const LaunchProgram& program = launch.program;
  const LaunchPass& pass = launch.pass;
  const std::uint32_t outputs = program.num_outputs;
  const std::uint64_t step = std::uint64_t{pass.every} * outputs;
  TreeRange trees = pass.added;
  FVM_NO_UNROLL
  while (trees.begin < pass.added.end) {
    const std::uint32_t left = pass.added.end - trees.begin;
    trees.end = trees.begin + (step < left ? static_cast<std::uint32_t>(step) : left);
    FVM_NO_UNROLL
    for (std::uint32_t k = 0; k < outputs; ++k) {
      const TreesOfOutput mine = trees_of_output(program, trees, trees.begin % outputs, k);
      FVM_NO_UNROLL
      for (std::uint32_t t = 0; t < mine.count; ++t)
        sums[k] += added_by_leaf(launch, row, k, leaves[mine[t]]);
    }
    if (is_decided(program.kinds->early_stop, sums, outputs, pass.margin)) return;
    trees.begin = trees.end;
  }
}

/// Writes what a row's raw scores, which it changes, give.
FVM_DEVICE void store_scores(const Launch& launch, std::uint32_t row, double* scores) {
  const LaunchProgram& program = launch.program;
  const LaunchPass& pass = launch.pass;
  const ClassRule rule = program.kinds->class_rule;
  const bool raw =
      pass.output == OutputKind::Raw || (pass.output == OutputKind::Class && takes_raw_scores(rule));
  if (!raw && program.transform != Transform::Identity)
    transform_row(program.transform, scores, program.num_outputs, program.parameters);
  if (pass.output == OutputKind::Class)
    return label_row(rule, scores, program.num_outputs, pass.labels + std::size_t{row} * pass.value_width,
                     program.parameters);
  const std::size_t to = std::size_t{row} * pass.value_width;
  FVM_NO_UNROLL
  for (std::uint32_t k = 0; k < pass.value_width; ++k) {
    const double value = value_of(pass.pair, scores, k);
    if (pass.wide_values != nullptr)
      pass.wide_values[to + k] = value;
    else
      pass.values[to + k] = static_cast<float>(value);
  }
}

/// Computes a row's result, whose sums begin with what they hold.
FVM_DEVICE void stop_early(const Launch& launch, const double* leaves, std::uint32_t row, bool base_last,
                           double* sums) {
  add_until_decided(launch, leaves, row, sums);
  if (base_last)
    for (std::uint32_t k = 0; k < launch.program.num_outputs; ++k)
      sums[k] = with_base(launch, row, k, sums[k]);
  store_scores(launch, row, sums);
}

}  // namespace forestvm::kernels
