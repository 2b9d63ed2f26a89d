// The cost of a row in a call of few rows that is walked with trees in lanes, either by values or by rank codes, for
// which the row must be encoded first. The costs are nanoseconds on one core of an Intel Xeon of 2023 with AVX-512
// (bench/results/auto.md); only their ratios matter.
#pragma once

#include <cstdint>
#include <string>

namespace forestvm::scheduler {

struct FewRowsCost {
  double features = 0;  ///< features that splits read
  double steps = 0;     ///< steps of a row through all trees: trees x mean depth

  double walk_values() const { return 0.67 * steps; }
  double walk_codes() const { return 0.30 * steps; }
  /// Returns the cost of encoding a row: each feature's thresholds, which the rows of a call share, are loaded and
  /// searched.
  double encode(std::uint32_t rows) const { return features * (1.5 + 9.5 / rows); }

  /// Returns the largest number of rows for which walking values is faster; 0 if it is not faster by a quarter even
  /// for one row, UINT32_MAX if it is always faster.
  std::uint32_t rows_by_values() const;

  /// Return the reason for walking values or codes, with the costs of calls of `rows` rows both ways: "walks values,
  /// because …".
  std::string why_values(std::uint32_t rows) const;
  std::string why_codes(std::uint32_t rows) const;
};

}  // namespace forestvm::scheduler
