// A machine that computes nothing and watches everything: it runs a verified program and notes each cell that
// an instruction touches. In: a program, a number of rows, an output. Out: the first thing that a verified
// program must not do: touch a cell that does not exist, read one that nothing has set, leave one of the
// output unset, two iterations of a parallel loop at one cell of which one writes it, walks of trees outside
// their group, work without end.
#pragma once

#include <cstdint>
#include <string>

#include <forestvm/program.hpp>

namespace forestvm::test {

struct Watched {
  std::string harm;  ///< empty: none
  std::uint64_t steps = 0;
};

Watched watch(const Program& program, std::uint32_t rows, OutputKind output);

}  // namespace forestvm::test
