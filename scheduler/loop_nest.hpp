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
  bool parallel = false;  ///< Loop: not mapped, but parallel
  std::size_t site = 0;   ///< Walk, Leaves
  bool atomic = false;    ///< Walk
  std::uint32_t accumulator = 0;
  std::uint32_t from = 0;   ///< reductions, Round, SumTrees: the accumulator that is read
  std::uint32_t ahead = 0;  ///< Cache: iterations
  ReductionWish reduction{};
  LoopId rows = kNoLoop;                ///< loop over rows whose iteration is meant; kNoLoop: all rows
  OutputKind output = OutputKind::Raw;  ///< When, Unless
  std::vector<Statement> body;          ///< Loop, When, Unless
};

/// An accumulator of the nest.
struct NestAccumulator {
  AccumulatorKind kind = AccumulatorKind::F32;
  std::uint32_t parent = 0;      ///< its own number if it is not private
  std::uint64_t iterations = 1;  ///< most of the parallel loops over trees to which it is private
  std::uint32_t stored_in = 0;   ///< the accumulator in whose first copies it lies, or its own number
};

struct LoopNest {
  std::vector<Statement> body;
  std::vector<NestAccumulator> accumulators{NestAccumulator{}};  ///< the first is the result's
};

struct Lowering;
std::string print_nest(const Lowering& lowering);

}  // namespace forestvm::scheduler
