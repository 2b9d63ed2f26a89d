// See straight_code.hpp.
#include "vm/host/straight_code.hpp"

#include <forestvm/core/guards.hpp>
#include <forestvm/core/ranges.hpp>

namespace forestvm::host {
void StraightCode::make(const Inst* code, const Machine& machine) {
  is_made_ = false;
  std::size_t count = 0;
  for (std::uint32_t pc = 0; code[pc].op != Op::Halt; ++pc) {
    const Inst& inst = code[pc];
    if (is_guard(inst.op)) {
      const auto [is_taken, end] = guarded_block(inst, machine);
      if (!is_taken) pc = end;
    } else if (inst.op != Op::End) {
      if (is_loop(inst.op) || count == steps_.size() - 1) return;
      steps_[count++] = inst;
    }
  }
  steps_[count].op = Op::Halt;
  is_made_ = true;
}

}  // namespace forestvm::host
