// Checks what a model says about hashed features and derived columns, whichever reader made it.
#pragma once

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::frontend {

/// Refuses features that do not exist, tables of another size than their keys need, and more columns than nodes can
/// name.
Result<void> check_columns(const Model& model);

}  // namespace forestvm::frontend
