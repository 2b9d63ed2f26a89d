// Says which outputs a program has.
#pragma once

#include <forestvm/program.hpp>

namespace forestvm::bytecode {

/// Returns whether a program gives contributions or interactions.
bool can_explain(const Program& program, OutputKind output);

/// Returns whether calls can ask a program for an output, which its code then writes.
bool has_output(const Program& program, OutputKind output);

}  // namespace forestvm::bytecode
