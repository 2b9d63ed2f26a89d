// Makes Trees of the nodes of an OnnxForest. Nodes and subtrees that several parents share are repeated, which is exact
// but may take many nodes; a forest that would take too many is refused.
#pragma once

#include <vector>

#include <forestvm/load.hpp>
#include <forestvm/model.hpp>

#include "frontend/onnx_columns.hpp"
#include "frontend/onnx_forest.hpp"

namespace forestvm::frontend {

/// The outputs to which a forest's trees add, found by walking the trees.
struct OnnxShape {
  std::vector<std::uint32_t> outputs;  ///< The only output to which each tree adds, or kManyOutputs.
  std::vector<bool> always;            ///< True for each output to which some tree adds whatever the row is.
  std::size_t leaves = 0;
};

inline constexpr std::uint32_t kManyOutputs = UINT32_MAX;

/// Walks all trees. Refuses columns that do not exist, cycles, nodes that belong to two trees, and nodes that belong
/// to none.
Result<OnnxShape> check_onnx_trees(const OnnxForest& forest, std::uint32_t columns);

/// Makes the trees whose leaves are summed or, for Min and Max, the one tree whose leaves are the least or greatest
/// numbers of all trees' leaves. Trees have leaves of forest.num_outputs numbers if any tree adds to several outputs.
Result<std::vector<Tree>> onnx_trees(const OnnxForest& forest, const OnnxShape& shape,
                                     const OnnxColumns& columns, const LoadLimits& limits);

}  // namespace forestvm::frontend
