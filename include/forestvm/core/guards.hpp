// The instructions that open a block for some calls only: plan, on, when and unless. Whoever runs, links or verifies
// code for a call asks here whether the call takes the block, so that they cannot disagree.
#pragma once

#include <cstdint>

#include <forestvm/core/bytecode.hpp>

namespace forestvm {

constexpr bool is_guard(Op op) {
  return op == Op::Plan || op == Op::On || op == Op::When || op == Op::Unless;
}

/// A block that a guard opens.
struct GuardedBlock {
  bool is_taken;      ///< True if the call runs the block.
  std::uint32_t end;  ///< The pc of the end that closes the block.
};

/// Returns the block that an instruction opens, which is a guard.
/// Call has: std::uint32_t plan_rows, the number of rows by which plans are chosen; bool wants(OutputKind), which
/// returns whether the call writes an output; bool runs_on(TargetSet), which returns whether a set has the call's
/// CPU target.
template <class Call>
constexpr GuardedBlock guarded_block(const Inst& inst, Call& call) {
  if (inst.op == Op::Plan) {
    const auto [least, most, end] = operands<Op::Plan>(inst);
    return {least <= call.plan_rows && call.plan_rows <= most, end};
  }
  if (inst.op == Op::On) {
    const auto [targets, end] = operands<Op::On>(inst);
    return {call.runs_on(targets), end};
  }
  if (inst.op == Op::When) {
    const auto [output, end] = operands<Op::When>(inst);
    return {call.wants(output), end};
  }
  const auto [output, end] = operands<Op::Unless>(inst);
  return {!call.wants(output), end};
}

}  // namespace forestvm
