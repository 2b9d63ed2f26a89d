// The conformance matrix of one model: layout x tiling x directive set x contract. Every cell runs and is
// compared, or is refused by the compiler with a reason, or says why it was not run. With
// FORESTVM_MATRIX=FOLDER in the environment the cells are written there too, for `./dev conformance` to make
// one table of them.
#pragma once

#include "support/model_folders.hpp"

namespace forestvm::test {

/// Fails the current test where an answer differs; skips it if the model is refused.
void check_matrix(const support::ModelFile& file);

}  // namespace forestvm::test
