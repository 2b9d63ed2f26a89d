// Adds the leaves of a row, which an accumulator holds tree after tree, to the row's sums, in the model's order. Two
// functions load several leaves before they add them: additions wait for each other, and loads need not.
#pragma once

#include <cstdint>

#include <forestvm/core/leaf_vectors.hpp>

#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// Leaves that are loaded together.
inline constexpr std::uint32_t kLoadedTogether = 4;

/// Adds all leaves to the only sum of a row.
template <class Score>
FVM_DEVICE void add_to_only_sum(const LaunchProgram& program, const Score* leaves, Score* sum) {
  Score added = *sum;
  std::uint32_t t = 0;
  FVM_NO_UNROLL
  for (; t + kLoadedTogether <= program.num_trees; t += kLoadedTogether) {
    Score loaded[kLoadedTogether];
    for (std::uint32_t i = 0; i < kLoadedTogether; ++i) loaded[i] = leaves[t + i];
    for (std::uint32_t i = 0; i < kLoadedTogether; ++i) added += loaded[i];
  }
  FVM_NO_UNROLL
  for (; t < program.num_trees; ++t) added += leaves[t];
  *sum = added;
}

/// Adds each leaf to the sum of its tree's output.
template <class Score>
FVM_DEVICE void add_to_sums(const LaunchProgram& program, const Score* leaves, Score* sums) {
  std::uint32_t t = 0;
  FVM_NO_UNROLL
  for (; t + kLoadedTogether <= program.num_trees; t += kLoadedTogether) {
    Score loaded[kLoadedTogether];
    std::uint32_t outputs[kLoadedTogether];
    for (std::uint32_t i = 0; i < kLoadedTogether; ++i) {
      loaded[i] = leaves[t + i];
      outputs[i] = program.tree_outputs[t + i];
    }
    for (std::uint32_t i = 0; i < kLoadedTogether; ++i) sums[outputs[i]] += loaded[i];
  }
  FVM_NO_UNROLL
  for (; t < program.num_trees; ++t) sums[program.tree_outputs[t]] += leaves[t];
}

/// Adds the vectors that stand for the leaves.
template <class Score>
FVM_DEVICE void add_vectors(const LaunchProgram& program, const Score* leaves, Score* sums) {
  FVM_NO_UNROLL
  for (std::uint32_t t = 0; t < program.num_trees; ++t)
    add_vector(sums, leaf_vector(program.vectors, leaves[t]), program.vectors.width);
}

}  // namespace forestvm::kernels
