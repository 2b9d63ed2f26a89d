// A program's code -> phases: what of it a call's launches run one after the other, whatever the number of
// rows. Blocks of other outputs and plans are left out, and what an instruction says of a loop's place, which
// means nothing in a phase, becomes the register and the step that link.cpp and the kernels ask for.
#pragma once

#include <span>
#include <vector>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/result.hpp>

#include "kernels/link/link.hpp"

namespace forestvm::kernels {

/// Refused if the call's plan has no mapped loop, or loops that no launch can run.
Result<std::vector<std::vector<Inst>>> cut_phases(std::span<const Inst> code, const LinkRequest& request);

}  // namespace forestvm::kernels
