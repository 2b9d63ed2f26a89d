// A program written by hand, on which the verifier's rules for code are tested.
#pragma once

#include "breach.hpp"

namespace forestvm::test {

/// Private sums over trees 0 to 4, which lie in an array group, then trees 4 to 6, in a sparse one; then the
/// other outputs.
///    0  par r2, r0, step 4, @14
///    1    init a0, r2
///    2    slice r3, r1, from 0, to 4
///    3    par r4, r3, step 2, @6
///    4      privatize a1, r4, r2
///    5      walk a1, r4, r2, w0
///    6    end @3
///    7    reduce_dim a0, a1, r2, @3
///    8    slice r4, r1, from 4, to 6
///    9    walk a0, r4, r2, w1
///   10    when class, @13
///   11      transform a0, r2, softmax
///   12      label a0, r2, argmax
///   13    end @10
///   14  end @0
///   15  when raw, @17
///   16    store a0, r0
///   17  end @15
///   18  when value, @21
///   19    transform a0, r0, softmax
///   20    store a0, r0
///   21  end @18
///   22  when leaf, @27
///   23    slice r2, r1, from 0, to 4
///   24    leaves r2, r0, w0
///   25    slice r2, r1, from 4, to 6
///   26    leaves r2, r0, w1
///   27  end @22
///   28  halt
ProgramParts by_hand();

/// Adds to code that sets a0 the outputs that by_hand has after its loop, the ones for classes, and the halt.
void add_outputs(ProgramParts& parts);

/// Appends code. The ends of its blocks are counted from its own first instruction.
void append(ProgramParts& parts, std::initializer_list<Inst> code);

/// Inserts an instruction before `pc`, and adjusts references to later ones.
void insert(ProgramParts& parts, std::uint32_t pc, Inst with);

/// Replaces the instruction at `pc`.
inline auto at(std::size_t pc, Inst with) {
  return [=](ProgramParts& parts) { parts.code.at(pc) = with; };
}

inline auto before(std::uint32_t pc, Inst with) {
  return [=](ProgramParts& parts) { insert(parts, pc, with); };
}

}  // namespace forestvm::test
