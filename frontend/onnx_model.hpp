// Makes a Model of an ONNX file with one tree ensemble. ONNX Runtime sums float tensors in float32 in an order that
// depends on its number of threads; here leaves are summed in float64, and rows are compared in the type of the graph's
// input.
#pragma once

#include <cstddef>
#include <span>

#include <forestvm/load.hpp>
#include <forestvm/result.hpp>

#include "frontend/parsed_model.hpp"

namespace forestvm::frontend {

/// Returns true if the bytes start as a ModelProto does.
bool sniff_onnx(std::span<const std::byte> bytes);

/// Reads a model, which check_model has not checked yet. Errors name the node of the graph, or the byte.
Result<ParsedModel> read_onnx(std::span<const std::byte> bytes, const LoadLimits& limits);

}  // namespace forestvm::frontend
