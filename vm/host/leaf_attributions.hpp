// Prepares the numbers that leaves attribute to features, so that they can be added for many rows. In: the sections of
// approximate contributions. Out: the terms of each leaf.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <forestvm/core/transform.hpp>
#include <forestvm/program.hpp>

namespace forestvm::host {

/// A number that a leaf adds to one of a row's sums.
template <class Score>
struct LeafTerm {
  Score value;
  std::uint32_t
      sum;  ///< Attribution::index, or the index of the sum that nothing reads, the last of a row's.
};

/// The terms of all leaves, in the order of the section attributed_leaves. If the lists of a tree's leaves differ
/// little in length, the shorter ones get terms of zero for the sum that nothing reads: the processor then foresees
/// where the loop over a list ends, which saves more time than these terms cost.
struct LeafAttributions {
  LeafAttributions() = default;
  explicit LeafAttributions(const Program& program);

  /// For each leaf the index of its first term, and at the end the number of terms.
  std::vector<std::uint32_t> leaves;
  std::vector<LeafTerm<float>> singles;   ///< The terms if scores are float32.
  std::vector<LeafTerm<double>> doubles;  ///< The terms if scores are float64.
};

/// Returns the number of sums per row: one for each approximate contribution, and one that padding terms add to and
/// nothing reads.
inline std::size_t attributed_sums(const ProgramMeta& meta) {
  return meta.num_outputs * (std::size_t{meta.num_features} + 1) + 1;
}

/// Returns the number of rows whose sums are computed together. Their sums stay in the second-level cache.
inline std::size_t attributed_rows(const ProgramMeta& meta) {
  constexpr std::size_t kMostRows = 512, kBytes = std::size_t{128} << 10;
  return std::clamp<std::size_t>(kBytes / (attributed_sums(meta) * size_of(meta.score_type)), 1, kMostRows);
}

}  // namespace forestvm::host
