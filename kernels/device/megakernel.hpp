// The megakernel: every thread of a launch interprets the phase's code. On a GPU a kernel
// walks one layout and so takes few registers; the emulator's kernel walks all layouts.
#pragma once

#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>

#include "kernels/device/thread_machine.hpp"
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

template <class Listed>
FVM_DEVICE void run_phase(const Launch& launch) {
  ThreadState state(launch);
  ThreadMachine<Listed> machine(launch, state);
  interpret(launch.code, 0, machine);
}

}  // namespace forestvm::kernels
