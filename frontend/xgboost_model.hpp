// Makes a Model of XGBoost's files. JSON and UBJSON have a row of formats.def each, and the same fields.
#pragma once

#include <cstddef>
#include <span>

#include <forestvm/load.hpp>
#include <forestvm/result.hpp>

#include "frontend/parsed_model.hpp"

namespace forestvm::frontend {

/// Returns true if the bytes open as a JSON object does.
bool sniff_xgboost_json(std::span<const std::byte> bytes);
/// Returns true if the bytes open as a UBJSON object does.
bool sniff_xgboost_ubj(std::span<const std::byte> bytes);

/// Reads a model, which check_model has not checked yet. Errors name the JSON path, or the byte offset of a syntax
/// error.
Result<ParsedModel> read_xgboost_json(std::span<const std::byte> bytes, const LoadLimits& limits);
Result<ParsedModel> read_xgboost_ubj(std::span<const std::byte> bytes, const LoadLimits& limits);

}  // namespace forestvm::frontend
