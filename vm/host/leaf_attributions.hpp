// Prepares the numbers that leaves attribute to features, so that they can be added for many rows. In: the sections of
// approximate contributions. Out: the terms of each leaf.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <forestvm/core/transform.hpp>
#include <forestvm/program.hpp>

#include "vm/host/lines.hpp"

namespace forestvm::host {

/// A number that a leaf adds to one of a row's sums.
template <class Score>
struct LeafTerm {
  Score value;
  std::uint32_t sum;  ///< Attribution::index, or the index of a sum that nothing reads, the last of a row's.
};

/// Holds the terms of all leaves in one of two forms.
///
/// Lists: the terms of all leaves, in the order of the section attributed_leaves. If the lists of a tree's leaves
/// differ little in length, the shorter ones get terms of zero for a sum that nothing reads: the processor then
/// foresees where the loop over a list ends, which saves more time than these terms cost.
///
/// Numbers, for models of few features: each leaf has one for every feature, zero where it has no term. Adding zero
/// changes no sum, because sums begin with 0, and so none is ever -0.
struct LeafAttributions {
  LeafAttributions() = default;
  explicit LeafAttributions(const Program& program);

  template <class Score>
  const LeafTerm<Score>* terms() const {
    if constexpr (sizeof(Score) == sizeof(double))
      return doubles.data();
    else
      return singles.data();
  }

  /// For each leaf the index of its first term, or of its first line of numbers, and at the end the number of them.
  std::vector<std::uint32_t> leaves;
  std::vector<LeafTerm<float>> singles;   ///< The terms if scores are float32.
  std::vector<LeafTerm<double>> doubles;  ///< The terms if scores are float64.
  std::vector<Line> numbers;              ///< The numbers, in the type of the scores.
  std::size_t leaf_lines = 0;             ///< Lines of a leaf in `numbers`; 0 if there are lists.
  std::vector<std::uint32_t> outputs;     ///< The output of each tree, if there are numbers.
};

/// Returns the number of sums per row: one for each approximate contribution, and a line of those that nothing reads,
/// to which padding is added.
inline std::size_t attributed_sums(const ProgramMeta& meta) {
  return meta.num_outputs * (std::size_t{meta.num_features} + 1) + sizeof(Line) / sizeof(float);
}

/// Returns the number of rows whose sums are computed together. Their sums stay in the second-level cache.
inline std::size_t attributed_rows(const ProgramMeta& meta) {
  constexpr std::size_t kMostRows = 512, kBytes = std::size_t{128} << 10;
  return std::clamp<std::size_t>(kBytes / (attributed_sums(meta) * size_of(meta.score_type)), 1, kMostRows);
}

}  // namespace forestvm::host
