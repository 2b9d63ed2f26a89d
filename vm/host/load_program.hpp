// Loads a program for the host machine: chooses walkers for a CPU target, finds sections, and makes the
// tables that a program's bytes only imply.
#pragma once

#include "vm/host/machine.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm::host {

/// Loads a program whose loops are not mapped to a GPU. `executor` may be null. Environment error if the
/// build lacks a layout.
Result<std::unique_ptr<const LoadedProgram>> load_program(const Program& program, const Target& target,
                                                          const Executor* executor);

}  // namespace forestvm::host
