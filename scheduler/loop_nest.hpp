// The loop nest: the loop tree as statements (the papers' MIR). Every loop is still there; which of them a
// walk instruction absorbs is decided by the walk sites. Before legalization a walk reduces into `result`;
// afterwards into the accumulator of the parallel loops over trees around it. Printable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/core/bytecode.hpp>

#include "scheduler/loop_tree.hpp"

namespace forestvm::scheduler {

struct Statement {
  enum class Kind { Loop, Walk, Init, Zero, AddBase, Privatize, ReduceDim, When, Transform, Store, Label };

  Kind kind = Kind::Loop;
  LoopId loop = kNoLoop;  ///< Loop: itself; Privatize, ReduceDim: the parallel loop over trees
  bool parallel = false;  ///< Loop
  std::size_t site = 0;   ///< Walk
  std::uint32_t accumulator = 0;
  LoopId rows = kNoLoop;                ///< loop over rows whose iteration is meant; kNoLoop: all rows
  OutputKind output = OutputKind::Raw;  ///< When
  std::vector<Statement> body;          ///< Loop, When
};

struct LoopNest {
  std::vector<Statement> body;
  /// Most iterations of the parallel loops over trees that each accumulator is private to; [0], the result's,
  /// is 1.
  std::vector<std::uint64_t> accumulators{1};
};

struct Lowering;
std::string print_nest(const Lowering& lowering);

}  // namespace forestvm::scheduler
