// See straight_code.hpp.
#include "vm/host/straight_code.hpp"

namespace forestvm::host {
namespace {

/// Returns where the block that an instruction opens ends, if the machine does not run it; otherwise `pc`.
std::uint32_t end_of_skipped(const Inst& inst, std::uint32_t pc, const Machine& machine) {
  if (inst.op == Op::Plan) {
    const auto [least, most, end] = operands<Op::Plan>(inst);
    return machine.plan_rows < least || machine.plan_rows > most ? end : pc;
  }
  if (inst.op == Op::On) {
    const auto [targets, end] = operands<Op::On>(inst);
    return machine.runs_on(targets) ? pc : end;
  }
  if (inst.op == Op::When) {
    const auto [output, end] = operands<Op::When>(inst);
    return machine.wants(output) ? pc : end;
  }
  const auto [output, end] = operands<Op::Unless>(inst);
  return machine.wants(output) ? end : pc;
}

}  // namespace

void StraightCode::make(const Inst* code, const Machine& machine) {
  is_made_ = false;
  std::size_t count = 0;
  for (std::uint32_t pc = 0; code[pc].op != Op::Halt; ++pc) {
    const Inst& inst = code[pc];
    const bool guards =
        inst.op == Op::Plan || inst.op == Op::On || inst.op == Op::When || inst.op == Op::Unless;
    if (guards) {
      pc = end_of_skipped(inst, pc, machine);
    } else if (inst.op != Op::End) {
      if (is_parallel(inst.op) || inst.op == Op::For || count == steps_.size() - 1) return;
      steps_[count++] = inst;
    }
  }
  steps_[count].op = Op::Halt;
  is_made_ = true;
}

}  // namespace forestvm::host
