// Reads a .skops file: a zip archive of schema.json, which describes Python objects, and .npy files with their arrays.
// In: its bytes. Out: the model of the scikit-learn estimator that it holds. Unlike loading a pickle, reading it
// executes nothing.
#pragma once

#include <cstddef>
#include <span>

#include <forestvm/load.hpp>

#include "frontend/parsed_model.hpp"

namespace forestvm::frontend {

/// Returns true if the bytes begin a zip archive.
bool sniff_skops(std::span<const std::byte> bytes);
Result<ParsedModel> read_skops(std::span<const std::byte> bytes, const LoadLimits& limits);

}  // namespace forestvm::frontend
