// Turns the tests of ONNX's nodes into cuts of the number line. x < 5 has one cut, and a chain of the tests x == 1 and
// x == 2 has four:
//
//     x < 1 | x == 1 | 1 < x < 2 | x == 2 | x > 2
//
// In: a node of an OnnxForest and its columns. Out: cuts in terms of the row's feature, exact for every number of the
// row's type, and the node to which each part of the line, and NaN, goes.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/cut.hpp"
#include "frontend/onnx_columns.hpp"
#include "frontend/onnx_forest.hpp"

namespace forestvm::frontend {

struct OnnxSplit {
  std::uint32_t feature = 0;
  std::vector<Cut> cuts;               ///< Ascending.
  std::vector<std::uint32_t> targets;  ///< The node for each part of the line: one more than cuts.
  std::uint32_t nan_target = 0;
  std::size_t nodes = 0;  ///< Nodes of the forest that were read, for limits.
};

/// Returns the split of `node` and of the nodes after it that compare the same column for equality.
OnnxSplit onnx_split(const OnnxForest& forest, const OnnxColumns& columns, std::uint32_t node);

/// Removes the parts of the line that are not between the two cuts.
void keep_between(OnnxSplit& split, const Cut& lower, const Cut& upper);

/// The cuts below and above all numbers, infinities included.
inline constexpr Cut kLowestCut{-__builtin_inf(), false};
inline constexpr Cut kHighestCut{__builtin_inf(), true};

}  // namespace forestvm::frontend
