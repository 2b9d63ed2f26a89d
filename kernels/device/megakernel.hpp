// The megakernel: every thread of a launch interprets the phase's code, or runs it if it is a known code. On a GPU a
// kernel walks one layout and so takes few registers; the emulator's kernel walks all layouts.
#pragma once

#include <utility>

#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>

#include "kernels/device/thread_machine.hpp"
#include "kernels/link/known_code.hpp"
#include "kernels/link/launch.hpp"

namespace forestvm::kernels {

/// A LayoutList of the views that follow the first argument: the rows of layouts.def, each with a comma.
#define FVM_LAYOUT(number, Name, text, word, View, meaning) , View
template <class First, class... Views>
struct ListOf {
  using Type = LayoutList<Views...>;
};
using AllLayouts = ListOf<void
#include <forestvm/core/layouts.def>
                          >::Type;

/// Runs an instruction of a known code. Returns false if the block ends there, because others of its rows go on.
template <class Machine, KnownCode code, unsigned pc>
FVM_DEVICE bool run(Machine& machine, const KnownInst<code, pc>& inst) {
  constexpr Op op = KnownInst<code, pc>::kOp;
  if constexpr (op == Op::End)
    if constexpr (linked<Op::End, LinkedField::Joined>(KnownInst<code, pc>::kInst) != 0)
      return machine.joins_last(inst);
  if constexpr (op == Op::Map)
    machine.enter(inst);
  else if constexpr (op == Op::End)
    machine.leave(inst);
  else if constexpr (op == Op::Init)
    machine.init(inst);
  else if constexpr (op == Op::CacheRows)
    machine.cache_rows(inst);
  else if constexpr (op == Op::Privatize)
    machine.privatize(inst);
  else if constexpr (op == Op::Walk)
    machine.walk(inst);
  else if constexpr (op == Op::ReduceDim)
    machine.reduce_dim(inst);
  else if constexpr (op == Op::ReduceInplace)
    machine.reduce_inplace(inst);
  else if constexpr (op == Op::Round)
    machine.round(inst);
  else if constexpr (op == Op::SumTrees)
    machine.sum_trees(inst);
  else if constexpr (op == Op::Transform)
    machine.transform(inst);
  else if constexpr (op == Op::Store)
    machine.store(inst);
  else
    static_assert(op == Op::Halt);
  return true;
}

template <class Listed, KnownCode code, unsigned... pcs>
FVM_DEVICE void run_known(const Launch& launch, std::integer_sequence<unsigned, pcs...>) {
  ThreadState state(launch);
  ThreadMachine<Listed, code> machine(launch, state);
  static_cast<void>((run(machine, KnownInst<code, pcs>{launch.code[pcs]}) && ...));
}

template <class Listed, KnownCode code>
FVM_DEVICE void run_known(const Launch& launch) {
  run_known<Listed, code>(launch, std::make_integer_sequence<unsigned, known::Of<code>::kCode.size()>{});
}

/// Runs a known code out of line: with those of blocks that join inlined, registers do not suffice for kernels.
template <class Listed, KnownCode code>
FVM_DEVICE_CALL void call_known(const Launch& launch) {
  run_known<Listed, code>(launch);
}

template <class Listed>
FVM_DEVICE void run_phase(const Launch& launch) {
  if constexpr (Listed::kTakesValues)
    if (launch.known != KnownCode::None) {
      if (launch.known == KnownCode::Sums) return run_known<Listed, KnownCode::Sums>(launch);
      if (launch.known == KnownCode::Leaves) return run_known<Listed, KnownCode::Leaves>(launch);
      if (launch.known == KnownCode::JoinedSums) return call_known<Listed, KnownCode::JoinedSums>(launch);
      if (launch.known == KnownCode::JoinedExactSums)
        return call_known<Listed, KnownCode::JoinedExactSums>(launch);
      return run_known<Listed, KnownCode::ExactSums>(launch);
    }
  InterpreterState state(launch);
  ThreadMachine<Listed> machine(launch, state);
  interpret(launch.code, 0, machine);
}

}  // namespace forestvm::kernels
