// The megakernel: every thread of a launch interprets the phase's code, or runs it if it is a known code. On a GPU a
// kernel walks one layout and so takes few registers; the emulator's kernel walks all layouts.
#pragma once

#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>

#include "kernels/device/known_block.hpp"
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

template <class Listed, KnownCode code>
FVM_DEVICE void run_known(const Launch& launch) {
  KnownBlock<Listed, code>(launch).run();
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
