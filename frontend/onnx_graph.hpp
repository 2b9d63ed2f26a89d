// Reads the graph of an ONNX model of decision trees: nodes that lead from the inputs to the one tree ensemble, the
// ensemble, and nodes that turn its results into the outputs. In: the graph. Out: the ensemble and its columns. Any
// other node is refused by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/load.hpp>

#include "frontend/onnx_columns.hpp"
#include "frontend/onnx_forest.hpp"
#include "frontend/onnx_proto.hpp"

namespace forestvm::frontend {

struct OnnxPipeline {
  OnnxForest forest;
  OnnxColumns columns;                   ///< Input of the ensemble.
  std::string type;                      ///< Type of the ensemble's operation.
  std::vector<ComputedColumn> computed;  ///< Columns that the nodes in front of the ensemble compute.
  std::uint32_t num_features = 0;  ///< Numbers in a row: the columns of all inputs, in the graph's order.
  std::vector<std::string> feature_names;  ///< Names of the inputs if each is one feature; otherwise none.
  bool transformed = false;                ///< True if the transform is a node behind the ensemble.
  bool argmax = false;                     ///< True if an ArgMax turns the scores into classes.
};

Result<OnnxPipeline> read_onnx_graph(const OnnxGraph& graph, const LoadLimits& limits);

}  // namespace forestvm::frontend
