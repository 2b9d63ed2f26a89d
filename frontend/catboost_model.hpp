// Makes a Model of CatBoost's files, binary (.cbm) or JSON. CatBoost compares in float32 and goes right if x > border.
// It sums the trees in float64, scales the sum, and then adds the bias.
#pragma once

#include <cstddef>
#include <span>

#include <forestvm/load.hpp>
#include <forestvm/result.hpp>

#include "frontend/parsed_model.hpp"

namespace forestvm::frontend {

/// Returns true if the file begins with "CBM1".
bool sniff_catboost_cbm(std::span<const std::byte> bytes);

/// Returns true if the first name of the JSON object is one with which CatBoost's documents begin.
bool sniff_catboost_json(std::span<const std::byte> bytes);

/// Reads a model, which check_model has not checked yet. Errors name the part of the file.
Result<ParsedModel> read_catboost_cbm(std::span<const std::byte> bytes, const LoadLimits& limits);
Result<ParsedModel> read_catboost_json(std::span<const std::byte> bytes, const LoadLimits& limits);

}  // namespace forestvm::frontend
