// A machine that computes nothing and checks every access: it runs a verified program and records each cell
// that an instruction touches. In: a program, a number of rows, an output. Out: the first thing that a
// verified program must not do: touch a cell that does not exist, read a cell that was not set, leave a cell
// of the output unset, access one cell from two iterations of a parallel loop when one of them writes it,
// walk trees outside their group, work without end.
#pragma once

#include <cstdint>
#include <string>

#include <forestvm/program.hpp>

namespace forestvm::test {

struct Watched {
  std::string harm;  ///< description of the harm; empty if there is none
  std::uint64_t steps = 0;
};

Watched watch(const Program& program, std::uint32_t rows, OutputKind output,
              CpuTarget target = CpuTarget::Baseline);

}  // namespace forestvm::test
