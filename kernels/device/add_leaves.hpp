// Adds to an output of a row the leaves of the trees that add to it, in the model's order. An accumulator holds the
// row's leaves, tree after tree. Several leaves are loaded before they are added: additions wait for each other, and
// loads need not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <forestvm/core/leaf_outputs.hpp>
#include <forestvm/core/leaf_vectors.hpp>

#include "kernels/link/launch.hpp"
#include "kernels/vendor/device.hpp"

namespace forestvm::kernels {

/// Bytes of the leaves that are loaded together: each word takes a register.
inline constexpr std::uint32_t kLoadedBytes = 32;
/// Bytes of these where leaves are loaded while others are added.
inline constexpr std::uint32_t kAheadBytes = 64;

/// Trees that add to an output, in the model's order.
struct TreesOfOutput {
  const std::uint32_t* numbers;  ///< null: the trees are `first`, `first` + `step`, ...
  std::uint32_t first, step, count;

  FVM_DEVICE std::uint32_t operator[](std::uint32_t i) const {
    return numbers == nullptr ? first + i * step : numbers[i];
  }
};

/// `turn` is trees.begin modulo the number of outputs.
FVM_DEVICE TreesOfOutput trees_of_output(const LaunchProgram& program, TreeRange trees, std::uint32_t turn,
                                         std::uint32_t output) {
  if (program.vectors.count != 0) return {nullptr, trees.begin, 1, trees.end - trees.begin};
  const std::uint32_t step = program.num_outputs;
  if (program.output_trees == nullptr) {
    const std::uint32_t first = trees.begin + output - turn + (output < turn ? step : 0);
    return {nullptr, first, step, first < trees.end ? (trees.end - first - 1) / step + 1 : 0};
  }
  std::uint32_t begin = program.output_begins[output], end = program.output_begins[output + 1];
  FVM_NO_UNROLL
  while (begin < end && program.output_trees[begin] < trees.begin) ++begin;
  FVM_NO_UNROLL
  while (begin < end && program.output_trees[end - 1] >= trees.end) --end;
  return {program.output_trees + begin, 0, 0, end - begin};
}
FVM_DEVICE TreesOfOutput trees_of_output(const LaunchProgram& program, const LaunchPass& pass,
                                         std::uint32_t output) {
  return trees_of_output(program, pass.added, pass.turn, output);
}

/// Adds leaf_of(0), leaf_of(1), ..., of `count` trees, to the sum.
template <class Score, class LeafOf>
FVM_DEVICE void add_in_order(std::uint32_t count, Score& sum, const LeafOf& leaf_of) {
  constexpr std::uint32_t kTogether = kLoadedBytes / sizeof(Score);
  Score added = sum, loaded[kTogether];
  std::uint32_t begin = 0;
  FVM_NO_UNROLL
  for (; count - begin >= kTogether; begin += kTogether) {
    for (std::uint32_t i = 0; i < kTogether; ++i) loaded[i] = leaf_of(begin + i);
    for (std::uint32_t i = 0; i < kTogether; ++i) added += loaded[i];
  }
  const std::uint32_t rest = count - begin;
  if (rest != 0) {  // the last leaf is loaded in place of those that are not there
    for (std::uint32_t i = 0; i < kTogether; ++i) loaded[i] = leaf_of(begin + (i < rest ? i : rest - 1));
    for (std::uint32_t i = 0; i < kTogether; ++i)
      if (i < rest) added += loaded[i];
  }
  sum = added;
}

/// Leaves that are loaded at once.
template <class Score, std::uint32_t count>
struct alignas(count * sizeof(Score)) LoadedLeaves {
  Score leaves[count];
};

/// Adds the leaves of `count` trees from the first one on, until fewer are left than kAheadBytes hold. As soon as
/// leaves are added, later ones are loaded in their place: so the additions, which wait for each other, do not wait for
/// loads of shared memory. Returns the number of leaves that it has added. `load(i)` returns the i-th Loaded leaves.
template <class Loaded, class Score, class Load>
FVM_DEVICE std::uint32_t add_ahead(std::uint32_t count, Score& sum, const Load& load) {
  constexpr std::uint32_t kBytes = sizeof(Loaded) == sizeof(Score) ? kLoadedBytes : kAheadBytes;
  constexpr std::uint32_t kLoads = kBytes / sizeof(Loaded), kTogether = kBytes / sizeof(Score);
  const std::uint32_t whole = count / kTogether;
  if (whole == 0) return 0;
  Loaded loaded[kLoads];
  for (std::uint32_t i = 0; i < kLoads; ++i) loaded[i] = load(i);
  Score added = sum;
  std::uint32_t at = 0;
  FVM_NO_UNROLL
  for (std::uint32_t left = whole; left != 0; --left) {
    if (left != 1) at += kLoads;  // the last leaves are loaded again, and not added
    for (std::uint32_t i = 0; i < kLoads; ++i) {
      for (const Score leaf : loaded[i].leaves) added += leaf;
      loaded[i] = load(at + i);
    }
  }
  sum = added;
  return whole * kTogether;
}

/// Adds leaves that lie `step` leaves apart. Those that follow each other are loaded by 16 bytes.
template <class Score>
FVM_DEVICE void add_apart(const Score* first, std::uint32_t step, std::uint32_t count, Score& sum) {
  using Few = LoadedLeaves<Score, 16 / sizeof(Score)>;
  using One = LoadedLeaves<Score, 1>;
  std::uint32_t added = 0;
  if (step == 1 && reinterpret_cast<std::uintptr_t>(first) % sizeof(Few) == 0)
    added =
        add_ahead<Few>(count, sum, [&](std::uint32_t i) { return reinterpret_cast<const Few*>(first)[i]; });
  else
    added = add_ahead<One>(count, sum, [&](std::uint32_t i) { return One{{first[std::size_t{i} * step]}}; });
  add_in_order(count - added, sum, [&](std::uint32_t i) { return first[std::size_t{added + i} * step]; });
}

/// Returns the output of the function with this number for a row.
FVM_DEVICE double function_output(const LaunchProgram& program, const LaunchPass& pass, std::uint32_t row,
                                  double number) {
  return leaf_output(program.functions, number, [&](const IndexedTerm& term) {
    if (pass.leaf_values != nullptr)
      return pass.leaf_values[std::size_t{row} * program.functions.features + term.index];
    const auto x = static_cast<double>(pass.rows[row * pass.row_stride + term.feature]);
    return x >= -kTiny && x <= kTiny ? 0.0 : x;
  });
}

/// Adds the outputs of the functions of a row's leaves to one of its sums. It is not inlined, so that other programs do
/// without its registers.
FVM_DEVICE_CALL void add_functions(const LaunchProgram& program, const LaunchPass& pass, std::uint32_t row,
                                   std::uint32_t output, const double* leaves, double& sum) {
  const TreesOfOutput trees = trees_of_output(program, pass, output);
  FVM_NO_UNROLL
  for (std::uint32_t i = 0; i < trees.count; ++i)
    sum += function_output(program, pass, row, leaves[trees[i]]);
}

/// Adds the leaves of a row to one of its sums: numbers, or numbers of functions, or numbers of vectors of which each
/// has an element for each output.
template <class Score>
FVM_DEVICE void add_leaves_of_output(const Launch& launch, std::uint32_t row, std::uint32_t output,
                                     const Score* leaves, Score& sum) {
  const LaunchProgram& program = launch.program;
  if constexpr (std::is_same_v<Score, double>)
    if (program.functions.count != 0) return add_functions(program, launch.pass, row, output, leaves, sum);
  const TreesOfOutput trees = trees_of_output(program, launch.pass, output);
  if (program.vectors.count != 0)
    add_in_order(trees.count, sum, [&](std::uint32_t i) {
      return leaf_vector(program.vectors, leaves[trees.first + i])[output];
    });
  else if (trees.numbers != nullptr)
    add_in_order(trees.count, sum, [&](std::uint32_t i) { return leaves[trees.numbers[i]]; });
  else
    add_apart(leaves + trees.first, trees.step, trees.count, sum);
}

}  // namespace forestvm::kernels
