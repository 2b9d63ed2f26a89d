// See straight_code.hpp.
#include "vm/host/straight_code.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

#include <forestvm/core/guards.hpp>
#include <forestvm/core/interpret.hpp>
#include <forestvm/core/ranges.hpp>

namespace forestvm::host {

void StraightCode::make(const LoadedProgram& loaded, const Pass& pass) {
  machine_.reset();
  Machine machine(loaded, pass);
  const Inst* const code = loaded.code;
  std::size_t count = 0;
  const Inst *init = nullptr, *walk = nullptr;
  // Steps are prepared only if each occurs once, and nothing changes the ranges or copies that they use.
  bool is_simple = true;
  for (std::uint32_t pc = 0; code[pc].op != Op::Halt; ++pc) {
    const Inst& inst = code[pc];
    if (is_guard(inst.op)) {
      const auto [is_taken, end] = guarded_block(inst, machine);
      if (!is_taken) pc = end;
      continue;
    }
    if (inst.op == Op::End || (inst.op == Op::Store && machine.stores_nothing(inst))) continue;
    if (is_loop(inst.op) || count == steps_.size() - 1) return;
    if (inst.op == Op::Init) is_simple &= std::exchange(init, &inst) == nullptr;
    if (inst.op == Op::Walk) is_simple &= std::exchange(walk, &inst) == nullptr;
    is_simple &= inst.op != Op::Privatize && inst.op != Op::Slice;
    steps_[count++] = inst;
  }
  steps_[count].op = Op::Halt;
  machine_ = machine;
  if (!is_simple || walk == nullptr) return;
  const bool sets_sums =
      init != nullptr && operands<Op::Init>(*init).acc_out == operands<Op::Walk>(*walk).acc_out;
  machine_->keep_ready(sets_sums ? init : nullptr, *walk, ready_);
}

void StraightCode::run() { interpret(steps_.data(), 0, *machine_); }

}  // namespace forestvm::host
