// The one opcode switch. In: verified code and a machine. Out: whatever the machine makes of it. The machine
// decides how a parallel loop runs, where accumulators live and what walks trees; this file only knows the
// order of things. Serial loops iterate here, without recursion; a parallel loop runs its block through the
// machine.
#pragma once

#include <cstdint>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

/// A run of consecutive rows or trees, and, when a loop made it, the number of the iteration.
struct Range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t iteration = 0;

  FVM_HOST_DEVICE std::uint32_t size() const { return end - begin; }
};

/// How many chunks of `step` elements a range has; the last may be short.
FVM_HOST_DEVICE constexpr std::uint32_t iterations(std::uint32_t size, std::uint32_t step) {
  return size == 0 ? 0 : (size - 1) / step + 1;
}

/// Chunk number `iteration` of a range, cut at the range's end.
FVM_HOST_DEVICE inline Range chunk(const Range& range, std::uint32_t step, std::uint32_t iteration) {
  const std::uint32_t begin = range.begin + iteration * step;
  return {begin, range.end - begin > step ? begin + step : range.end, iteration};
}

/// Elements [from, to) of a range, cut at its end.
FVM_HOST_DEVICE inline Range slice(const Range& range, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t size = range.size();
  return {range.begin + (from < size ? from : size), range.begin + (to < size ? to : size), 0};
}

/// The operands that loops of every kind have.
struct LoopOperands {
  std::uint32_t out;
  std::uint32_t in;
  std::uint32_t step;
  std::uint32_t partner;
};

FVM_HOST_DEVICE constexpr bool is_loop(Op op) { return op == Op::For || op == Op::Par || op == Op::Map; }
/// Whether a loop's iterations may run side by side.
FVM_HOST_DEVICE constexpr bool is_parallel(Op op) { return op == Op::Par || op == Op::Map; }

/// Of an instruction that is a loop.
FVM_HOST_DEVICE constexpr LoopOperands loop_operands(const Inst& inst) {
  using enum OperandKind;
  switch (inst.op) {
    case Op::Par:
      return {operand<Op::Par, RangeOut>(inst), operand<Op::Par, RangeIn>(inst), operand<Op::Par, Step>(inst),
              operand<Op::Par, Partner>(inst)};
    case Op::Map:
      return {operand<Op::Map, RangeOut>(inst), operand<Op::Map, RangeIn>(inst), operand<Op::Map, Step>(inst),
              operand<Op::Map, Partner>(inst)};
    default:
      return {operand<Op::For, RangeOut>(inst), operand<Op::For, RangeIn>(inst), operand<Op::For, Step>(inst),
              operand<Op::For, Partner>(inst)};
  }
}

/// Whether a machine is one of many that run the code in step, as the threads of a GPU's block do: each runs
/// every instruction, with the iteration of a mapped loop that is its own, and all take every turn together.
/// Instead of parallel() it has: bool first(const Inst& loop) and bool next(const Inst& loop), which set a
/// for's chunk and say whether there is a turn to take; void enter(const Inst& loop) and void leave(const
/// Inst& loop) around the block of a map. Its code is linked to a call: the instructions are of another type
/// than Inst, with an operand<>() of their own, and when, unless and plan are resolved, so that wants() and
/// plan_rows are not needed.
template <class Machine>
inline constexpr bool kInStep = requires {
  requires Machine::kRunsInStep;
};

/// Runs code from `pc` to the halt, or to the end of the parallel block that `pc` lies in.
/// Machine has: Range ranges[kRangeRegisters]; std::uint32_t plan_rows, for which a plan is chosen; bool
/// wants(OutputKind); void parallel(const Inst& loop, std::uint32_t body) which must run interpret(code,
/// body, m) for each chunk of a par or map on a machine m of its own whose RangeOut register holds the chunk;
/// and one void NAME(const Inst&) for each plain opcode but slice, NAME being its text.
template <class Code, class Machine>
// NOLINTNEXTLINE(readability-function-size): a case an opcode
FVM_HOST_DEVICE void interpret(const Code* code, std::uint32_t pc, Machine& machine) {
  using enum OperandKind;
  for (;;) {
    const Code& inst = code[pc];
    switch (inst.op) {
      case Op::Halt:
        return;
      case Op::For: {
        if constexpr (kInStep<Machine>) {
          if (machine.first(inst)) break;
          pc = operand<Op::For, Partner>(inst) + 1;
          continue;
        }
        const Range& over = machine.ranges[operand<Op::For, RangeIn>(inst)];
        if (over.size() == 0) {
          pc = operand<Op::For, Partner>(inst) + 1;
          continue;
        }
        machine.ranges[operand<Op::For, RangeOut>(inst)] = chunk(over, operand<Op::For, Step>(inst), 0);
        break;
      }
      case Op::Par:
      case Op::Map:
        if constexpr (kInStep<Machine>) {
          machine.enter(inst);
          break;
        } else {
          machine.parallel(inst, pc + 1);
          pc = loop_operands(inst).partner + 1;
          continue;
        }
      // NOLINTNEXTLINE(bugprone-branch-clone): all three do nothing in a machine that runs in step
      case Op::When:
        if constexpr (!kInStep<Machine>) {
          if (!machine.wants(static_cast<OutputKind>(operand<Op::When, Output>(inst)))) {
            pc = operand<Op::When, Partner>(inst) + 1;
            continue;
          }
        }
        break;
      case Op::Unless:
        if constexpr (!kInStep<Machine>) {
          if (machine.wants(static_cast<OutputKind>(operand<Op::Unless, Output>(inst)))) {
            pc = operand<Op::Unless, Partner>(inst) + 1;
            continue;
          }
        }
        break;
      case Op::Plan:
        if constexpr (!kInStep<Machine>) {
          const std::uint32_t rows = machine.plan_rows;
          if (rows < operand<Op::Plan, Least>(inst) || rows > operand<Op::Plan, Most>(inst)) {
            pc = operand<Op::Plan, Partner>(inst) + 1;
            continue;
          }
        }
        break;
      case Op::End: {
        const std::uint32_t open = operand<Op::End, Partner>(inst);
        if constexpr (kInStep<Machine>) {
          if (code[open].op == Op::Map) machine.leave(code[open]);
          if (code[open].op == Op::For && machine.next(code[open])) {
            pc = open + 1;
            continue;
          }
          break;
        }
        if (is_parallel(code[open].op)) return;  // one iteration is done; the machine has the next
        if (code[open].op == Op::For) {
          const Range& over = machine.ranges[operand<Op::For, RangeIn>(code[open])];
          Range& current = machine.ranges[operand<Op::For, RangeOut>(code[open])];
          if (current.end != over.end) {
            current = chunk(over, operand<Op::For, Step>(code[open]), current.iteration + 1);
            pc = open + 1;
            continue;
          }
        }
        break;
      }
      case Op::Slice:
        machine.ranges[operand<Op::Slice, RangeOut>(inst)] =
            slice(machine.ranges[operand<Op::Slice, RangeIn>(inst)], operand<Op::Slice, From>(inst),
                  operand<Op::Slice, To>(inst));
        break;
      case Op::CacheRows:
        machine.cache_rows(inst);
        break;
      case Op::CacheTrees:
        machine.cache_trees(inst);
        break;
      case Op::Init:
        machine.init(inst);
        break;
      case Op::Zero:
        machine.zero(inst);
        break;
      case Op::AddBase:
        machine.add_base(inst);
        break;
      case Op::Privatize:
        machine.privatize(inst);
        break;
      case Op::Walk:
        machine.walk(inst);
        break;
      case Op::Leaves:
        machine.leaves(inst);
        break;
      case Op::ReduceDim:
        machine.reduce_dim(inst);
        break;
      case Op::ReduceInplace:
        machine.reduce_inplace(inst);
        break;
      case Op::Round:
        machine.round(inst);
        break;
      case Op::SumTrees:
        machine.sum_trees(inst);
        break;
      case Op::Transform:
        machine.transform(inst);
        break;
      case Op::Store:
        machine.store(inst);
        break;
      case Op::Label:
        machine.label(inst);
        break;
      case Op::Encode:
        machine.encode(inst);
        break;
    }
    ++pc;
  }
}

}  // namespace forestvm
