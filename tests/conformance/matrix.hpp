// The conformance matrix of one model: layout x tiling x directive set x contract. Every cell runs and is
// compared, or the compiler refuses it with a reason, or it says why it was not run. With
// FORESTVM_MATRIX=FOLDER in the environment the cells are also written to that folder, from which `./dev
// conformance` makes one table.
#pragma once

#include "support/model_folders.hpp"

namespace forestvm::test {

/// Fails the current test if an answer differs; skips it if the model is refused.
void check_matrix(const support::ModelFile& file);

}  // namespace forestvm::test
