// Makes a Model of LightGBM's text files. LightGBM compares and sums in float64, goes left if x <= threshold, and takes
// x for 0 if |x| <= 1e-35.
#pragma once

#include <cstddef>
#include <span>

#include <forestvm/load.hpp>
#include <forestvm/result.hpp>

#include "frontend/parsed_model.hpp"

namespace forestvm::frontend {

/// Returns true if the first line is "tree".
bool sniff_lightgbm_text(std::span<const std::byte> bytes);

/// Reads a model, which check_model has not checked yet. Errors name the line.
Result<ParsedModel> read_lightgbm_text(std::span<const std::byte> bytes, const LoadLimits& limits);

}  // namespace forestvm::frontend
