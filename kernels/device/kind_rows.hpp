// The memory of the kernel of kinds: rows of accumulators and of the output, numbers of threads, and what the leaves
// that an accumulator keeps add to scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <forestvm/core/leaf_vectors.hpp>
#include <forestvm/core/sums.hpp>

#include "kernels/device/add_leaves.hpp"
#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// Numbers of a thread, which lie between those of other threads: neighbours' numbers are neighbours.
template <class T>
struct ThreadNumbers {
  T* first;
  std::size_t stride;  ///< from one number of the thread to the next

  FVM_DEVICE T& operator[](std::size_t i) const { return first[i * stride]; }
};

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

/// Returns what a kept leaf adds to an output of a row: itself, or what its number stands for.
template <class Score>
FVM_DEVICE Score added_by_leaf(const Launch& launch, std::uint32_t row, std::uint32_t output, Score leaf) {
  const LaunchProgram& program = launch.program;
  if (program.vectors.count != 0) return leaf_vector(program.vectors, leaf)[output];
  if constexpr (std::is_same_v<Score, double>)
    if (program.functions.count != 0) return function_output(program, launch.pass, row, leaf);
  return leaf;
}

/// Returns a sum of leaves as a raw score, to which a base score or margin is added last.
template <class Score>
FVM_DEVICE Score with_base(const Launch& launch, std::uint32_t row, std::uint32_t output, Score sum) {
  RoundedSum<Score> score{sum};
  if (launch.program.score_scale != 1) score.value *= static_cast<Score>(launch.program.score_scale);
  forestvm::add_base(score, launch.pass.base[std::size_t{row} * launch.pass.base_stride + output],
                     launch.program.scale);
  return score.value;
}

}  // namespace forestvm::kernels
