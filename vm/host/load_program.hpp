// Program -> what the host machine runs: walkers chosen for a CPU target, sections found, tables made that a
// program's bytes only imply.
#pragma once

#include "vm/host/machine.hpp"
#include "vm/host/targets/target.hpp"

namespace forestvm::host {

/// `program` must not be mapped to a GPU. `executor` may be null. Environment error if the build lacks a
/// layout.
Result<LoadedProgram> load_program(const Program& program, const Target& target, const Executor* executor);

}  // namespace forestvm::host
