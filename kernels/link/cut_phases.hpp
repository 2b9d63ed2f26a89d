// A program's code -> phases: the instructions that a call's launches run one after the other, for any number
// of rows. Blocks of other outputs and other plans are left out. An instruction that names a loop by its pc
// in the program gets that loop's registers and step instead.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/result.hpp>

#include "kernels/link/link.hpp"

namespace forestvm::kernels {

/// Returns whether an instruction is for the kernel of kinds, in a phase of its own.
constexpr bool is_of_kinds(Op op) {
  return op == Op::Explain || op == Op::StoreTrees || op == Op::StoreStages || op == Op::Attribute ||
         op == Op::Quantiles;
}

/// The instructions of a phase.
struct PhaseCode {
  std::vector<LinkedInst> code;
  /// Pc in the program of each instruction, by which the map of its code has facts about it; kNoPc for ends
  /// that cutting adds.
  std::vector<std::uint32_t> pcs;
};
inline constexpr std::uint32_t kNoPc = UINT32_MAX;

/// Returns the code of each phase. Refuses a plan that has no mapped loop, loops that no launch can run, and outputs of
/// trees, stages and contributions that are not written for all rows of a call at once.
Result<std::vector<PhaseCode>> cut_phases(std::span<const Inst> code, const LinkRequest& request);

}  // namespace forestvm::kernels
