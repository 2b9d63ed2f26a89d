// Compares the reference predictor's answers with those that a model's trainer gave, for every format that is read:
// this is where the tests say how close answers must be.
#pragma once

#include <string>

#include <forestvm/model.hpp>

#include "support/model_folders.hpp"

namespace forestvm::support {

/// Compares all that the trainer's answers beside the file have: raw scores, values, labels and numbers of leaves.
/// Returns what differs, in words; nothing if the answers are the trainer's. `model` is what the file was loaded as.
/// Throws std::runtime_error if the answers are damaged.
std::string difference_from_trainer(const Model& model, const ModelFile& file);

}  // namespace forestvm::support
