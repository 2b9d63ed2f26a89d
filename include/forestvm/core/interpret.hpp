// Interprets bytecode: the one switch over opcodes. In: verified code and a machine. Out: the machine's
// results. The machine decides how a parallel loop runs, where accumulators live and what walks trees; this
// file only knows the order of instructions. Serial loops iterate here, without recursion; a parallel loop
// runs its block through the machine.
#pragma once

#include <cstdint>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/guards.hpp>
#include <forestvm/core/platform.hpp>
#include <forestvm/core/ranges.hpp>

namespace forestvm {

/// True for a machine that is one of many that run the code in step, as the threads of a GPU's block do. Each
/// machine runs every instruction; each runs the block of a mapped loop for an iteration of its own, and all of
/// them take each iteration of a `for` together. Instead of parallel() such a machine has: bool first(const Inst&
/// loop), which sets the first chunk of a `for` and returns whether there is an iteration to run; void enter(const
/// Inst& loop), which is called before the block of a map; and bool leave(const Inst& end), which is called at the end
/// of either, sets the next chunk of a `for` and returns whether its block is to run again. Its code is linked for a
/// call: the instructions are of another type than Inst, with an operand<>() of their own, and when, unless, plan and
/// on are resolved, so that wants(), plan_rows and runs_on() are not needed.
template <class Machine>
inline constexpr bool kInStep = requires {
  requires Machine::kRunsInStep;
};

/// Runs code from `pc` to the halt, or to the end of the parallel block that `pc` lies in.
/// Machine has: Range ranges[kRangeRegisters]; std::uint32_t plan_rows, the number of rows by which plans are
/// chosen; bool wants(OutputKind); bool runs_on(TargetSet); void parallel(const Inst& loop, std::uint32_t body)
/// which must run interpret(code, body, m) for each chunk of a par or map on a machine m of its own whose RangeOut
/// register holds the chunk; and one void NAME(const Inst&) for each plain opcode but slice, NAME being its text.
template <class Code, class Machine>
// NOLINTNEXTLINE(readability-function-size): one case for each opcode
FVM_HOST_DEVICE void interpret(const Code* code, std::uint32_t pc, Machine& machine) {
  using enum OperandKind;
  for (;;) {
    const Code& inst = code[pc];
    switch (inst.op) {
      case Op::Halt:
        return;
      case Op::For: {
        if constexpr (kInStep<Machine>) {
          if (!machine.first(inst)) pc = operand<Op::For, Partner>(inst);
          break;
        } else {
          const auto [out, in, step, end] = operands<Op::For>(inst);
          const Range& over = machine.ranges[in];
          if (over.size() == 0) {
            pc = end + 1;
            continue;
          }
          machine.ranges[out] = chunk(over, step, 0);
          break;
        }
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
      case Op::When:
      case Op::Unless:
      case Op::Plan:
      case Op::On:
        if constexpr (!kInStep<Machine>) {
          const auto [is_taken, end] = guarded_block(inst, machine);
          if (!is_taken) pc = end;
        }
        break;
      case Op::End: {
        const std::uint32_t open = operand<Op::End, Partner>(inst);
        if constexpr (kInStep<Machine>) {
          if (machine.leave(inst)) pc = open;
        } else {
          if (is_parallel(code[open].op)) return;  // one iteration is done; the machine has the next
          if (code[open].op == Op::For) {
            const auto [out, in, step, end] = operands<Op::For>(code[open]);
            const Range& over = machine.ranges[in];
            Range& current = machine.ranges[out];
            if (current.end != over.end) {
              current = chunk(over, step, current.iteration + 1);
              pc = open + 1;
              continue;
            }
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
      case Op::StoreTrees:  // NOLINT(bugprone-branch-clone): the branches are empty in step
        if constexpr (!kInStep<Machine>) machine.store_trees(inst);  // phases of a launch never contain it
        break;
      case Op::StoreStages:
        if constexpr (!kInStep<Machine>) machine.store_stages(inst);  // phases of a launch never contain it
        break;
      case Op::Explain:
        if constexpr (!kInStep<Machine>) machine.explain(inst);  // no phase of a launch contains it
        break;
      case Op::Attribute:
        if constexpr (!kInStep<Machine>) machine.attribute(inst);  // no phase of a launch contains it
        break;
      case Op::Quantiles:
        if constexpr (!kInStep<Machine>) machine.quantiles(inst);  // no phase of a launch contains it
        break;
    }
    ++pc;
  }
}

}  // namespace forestvm
