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

/// Runs code from `pc` to the halt, or to the end of the parallel block that `pc` lies in.
/// Machine has: Range ranges[kRangeRegisters]; bool wants(OutputKind);
/// void parallel(const Inst& par, std::uint32_t body) which must run interpret(code, body, m) for each chunk
/// of the loop on a machine m of its own whose RangeOut register holds the chunk; and one void NAME(const
/// Inst&) for init, privatize, walk, reduce_dim, transform, store and label.
template <class Machine>
FVM_HOST_DEVICE void interpret(const Inst* code, std::uint32_t pc, Machine& machine) {
  using enum OperandKind;
  for (;;) {
    const Inst& inst = code[pc];
    switch (inst.op) {
      case Op::Halt:
        return;
      case Op::For: {
        const Range& over = machine.ranges[operand<Op::For, RangeIn>(inst)];
        if (over.size() == 0) {
          pc = operand<Op::For, Partner>(inst) + 1;
          continue;
        }
        machine.ranges[operand<Op::For, RangeOut>(inst)] = chunk(over, operand<Op::For, Step>(inst), 0);
        break;
      }
      case Op::Par:
        machine.parallel(inst, pc + 1);
        pc = operand<Op::Par, Partner>(inst) + 1;
        continue;
      case Op::When:
        if (!machine.wants(static_cast<OutputKind>(operand<Op::When, Output>(inst)))) {
          pc = operand<Op::When, Partner>(inst) + 1;
          continue;
        }
        break;
      case Op::End: {
        const std::uint32_t open = operand<Op::End, Partner>(inst);
        if (code[open].op == Op::Par) return;  // one iteration is done; the machine has the next
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
      case Op::ReduceDim:
        machine.reduce_dim(inst);
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
    }
    ++pc;
  }
}

}  // namespace forestvm
