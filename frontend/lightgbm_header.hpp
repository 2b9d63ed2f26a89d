// Adds the header of a LightGBM model to a Model: outputs, rounds, names, objective. The trees must have been read
// before.
#pragma once

#include <forestvm/load.hpp>
#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "frontend/lightgbm_text.hpp"

namespace forestvm::frontend {

/// Sets everything of the model but its format and its trees.
Result<void> add_lightgbm_header(const LightgbmHeader& header, const LoadLimits& limits, Model& model);

}  // namespace forestvm::frontend
