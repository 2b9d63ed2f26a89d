// The loop nest: the loop tree as statements (the papers' MIR). It has every loop; the walk sites say which of them
// a walk instruction absorbs. Before legalization a walk reduces into `result`, afterwards into the accumulator of
// the parallel loops over trees around it. It can be printed.
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
    Encode,
    StoreTrees,
    StoreStages,
    Attribute,
    Quantiles
  };

  Kind kind = Kind::Loop;
  /// The loop of a Loop statement; for Cache, the loop around it; for Privatize and reductions, the parallel loop
  /// over trees.
  LoopId loop = kNoLoop;
  bool parallel = false;   ///< true for a Loop that is parallel on the host
  std::size_t site = 0;    ///< number of the site of a Walk or Leaves, in Lowering::sites
  bool atomic = false;     ///< true for a Walk that adds atomically
  bool base_last = false;  ///< true for a StoreStages whose sums do not begin with the base scores
  std::uint32_t accumulator = 0;
  std::uint32_t from = 0;   ///< accumulator that a reduction, a Round, a SumTrees or a StoreStages reads
  std::uint32_t ahead = 0;  ///< number of iterations that a Cache looks ahead
  ReductionRequest reduction{};
  LoopId rows = kNoLoop;                ///< loop whose iteration is the statement's rows; kNoLoop: all rows
  OutputKind output = OutputKind::Raw;  ///< output that a When or an Unless names
  std::vector<Statement> body;          ///< content of a Loop, a When or an Unless
};

/// An accumulator of the nest.
struct NestAccumulator {
  AccumulatorKind kind = AccumulatorKind::F32;
  std::uint32_t parent = 0;      ///< the accumulator it is a copy of, or its own number
  std::uint64_t iterations = 1;  ///< the largest number of copies, one for each iteration
  std::uint32_t stored_in = 0;   ///< the accumulator in whose first copies it lies, or its own number
};

struct LoopNest {
  std::vector<Statement> body;
  /// The accumulators, by number; number 0 is the result's.
  std::vector<NestAccumulator> accumulators{NestAccumulator{}};
};

struct Lowering;
std::string print_nest(const Lowering& lowering);

}  // namespace forestvm::scheduler
