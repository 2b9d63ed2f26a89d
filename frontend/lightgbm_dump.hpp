// Makes a Model of LightGBM's JSON dump (Booster.dump_model), which says what a text model says.
#pragma once

#include <cstddef>
#include <span>

#include <forestvm/load.hpp>
#include <forestvm/result.hpp>

#include "frontend/parsed_model.hpp"

namespace forestvm::frontend {

/// Returns true if the bytes open a JSON object whose first member is "name" with the text "tree".
bool sniff_lightgbm_json(std::span<const std::byte> bytes);

/// Reads a model, which check_model has not checked yet. Errors name the JSON path.
Result<ParsedModel> read_lightgbm_json(std::span<const std::byte> bytes, const LoadLimits& limits);

}  // namespace forestvm::frontend
