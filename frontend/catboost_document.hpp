// Reads CatboostParts from CatBoost's JSON format, and from the JSON texts with a model's parameters in its binary
// format.
#pragma once

#include <string_view>

#include <forestvm/load.hpp>
#include <forestvm/result.hpp>

#include "frontend/catboost_parts.hpp"

namespace forestvm::frontend {

/// Adds one entry of the binary format's InfoMap to the parts. Entries that do not matter to predictions are skipped.
Result<void> add_catboost_info(std::string_view key, std::string_view value, const LoadLimits& limits,
                               CatboostParts& parts);

}  // namespace forestvm::frontend
