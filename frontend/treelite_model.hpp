// Makes a Model of a Treelite checkpoint. In: the bytes of a checkpoint of Treelite 3 or 4. Out: a Model whose
// predictions are those of Treelite's own predictor (GTIL) of version 4.
#pragma once

#include <cstddef>
#include <span>

#include <forestvm/load.hpp>
#include <forestvm/result.hpp>

#include "frontend/parsed_model.hpp"
#include "frontend/treelite_checkpoint.hpp"

namespace forestvm::frontend {

Result<ParsedModel> read_treelite(std::span<const std::byte> bytes, const LoadLimits& limits);

}  // namespace forestvm::frontend
