// The loop nest: the loop tree as statements (the papers' MIR). It has every loop; the walk sites say which
// of them a walk instruction absorbs. Before legalization a walk reduces into `result`, afterwards into the
// accumulator of the parallel loops over trees around it. Printable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/core/bytecode.hpp>

#include "scheduler/loop_tree.hpp"

namespace forestvm::scheduler {

struct Statement {
  enum class Kind {
    Loop,
    Cache,
    Walk,
    Leaves,
    Init,
    Zero,
    AddBase,
    Privatize,
    ReduceDim,
    ReduceInplace,
    Round,
    SumTrees,
    When,
    Unless,
    Transform,
    Store,
    Label,
    Encode
  };

  Kind kind = Kind::Loop;
  LoopId loop = kNoLoop;  ///< Loop: itself; Cache: the loop around; Privatize and reductions: the parallel
                          ///< loop over trees
  bool parallel = false;  ///< Loop: parallel on the host
  std::size_t site = 0;   ///< Walk, Leaves
  bool atomic = false;    ///< Walk
  std::uint32_t accumulator = 0;
  std::uint32_t from = 0;   ///< reductions, Round, SumTrees: the accumulator that is read
  std::uint32_t ahead = 0;  ///< Cache: iterations
  ReductionRequest reduction{};
  LoopId rows = kNoLoop;  ///< a loop over rows, for the rows of its iteration; kNoLoop: all rows
  OutputKind output = OutputKind::Raw;  ///< When, Unless
  std::vector<Statement> body;          ///< Loop, When, Unless
};

/// An accumulator of the nest.
struct NestAccumulator {
  AccumulatorKind kind = AccumulatorKind::F32;
  std::uint32_t parent = 0;      ///< the accumulator it is a copy of, or its own number
  std::uint64_t iterations = 1;  ///< the largest number of copies, one for each iteration
  std::uint32_t stored_in = 0;   ///< the accumulator that shares its memory, or its own number
};

struct LoopNest {
  std::vector<Statement> body;
  std::vector<NestAccumulator> accumulators{NestAccumulator{}};  ///< the first is the result's
};

struct Lowering;
std::string print_nest(const Lowering& lowering);

}  // namespace forestvm::scheduler
