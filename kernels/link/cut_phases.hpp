// A program's code -> phases: the instructions that a call's launches run one after the other, for any number
// of rows. Blocks of other outputs and other plans are left out. An instruction that names a loop by its pc
// in the program gets that loop's registers and step instead.
#pragma once

#include <span>
#include <vector>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/result.hpp>

#include "kernels/link/link.hpp"

namespace forestvm::kernels {

/// Returns the code of each phase. Refuses a plan that has no mapped loop, or loops that no launch can run.
Result<std::vector<std::vector<LinkedInst>>> cut_phases(std::span<const Inst> code,
                                                        const LinkRequest& request);

}  // namespace forestvm::kernels
