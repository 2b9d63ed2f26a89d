// Ranges of rows and trees, how loops and slices cut them, and which opcodes are loops. Shared by host and
// device code.
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

/// Returns the number of chunks of `step` elements in a range of `size` elements; the last may be short.
FVM_HOST_DEVICE constexpr std::uint32_t iterations(std::uint32_t size, std::uint32_t step) {
  return size == 0 ? 0 : (size - 1) / step + 1;
}

/// Returns chunk number `iteration` of a range, cut at the range's end.
FVM_HOST_DEVICE inline Range chunk(const Range& range, std::uint32_t step, std::uint32_t iteration) {
  const std::uint32_t begin = range.begin + iteration * step;
  return {begin, range.end - begin > step ? begin + step : range.end, iteration};
}

/// Returns the elements [from, to) of a range, cut at its end.
FVM_HOST_DEVICE inline Range slice(const Range& range, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t size = range.size();
  return {range.begin + (from < size ? from : size), range.begin + (to < size ? to : size), 0};
}

FVM_HOST_DEVICE constexpr bool is_loop(Op op) { return op == Op::For || op == Op::Par || op == Op::Map; }
/// Returns whether a loop's iterations may run side by side.
FVM_HOST_DEVICE constexpr bool is_parallel(Op op) { return op == Op::Par || op == Op::Map; }

/// The operands that loops of every kind have.
struct LoopOperands {
  std::uint32_t out;
  std::uint32_t in;
  std::uint32_t step;
  std::uint32_t partner;
};

static_assert(
    [] {
      for (const OpInfo& row : bytecode_rows::kOpInfo) {
        const auto lists = [&](OperandKind kind) { return position(row.operands, kind) < kMaxOperands; };
        if (is_loop(row.op) != (lists(OperandKind::Step) && lists(OperandKind::Partner))) return false;
      }
      return true;
    }(),
    "is_loop and loop_operands know every opcode that has steps");

template <Op op>
FVM_HOST_DEVICE constexpr LoopOperands loop_operands(const Inst& inst) {
  const auto loop = operands<op>(inst);
  return {loop.range_out, loop.range_in, loop.step, loop.partner};
}

/// Returns the operands of an instruction that is a loop.
FVM_HOST_DEVICE constexpr LoopOperands loop_operands(const Inst& inst) {
  if (inst.op == Op::Par) return loop_operands<Op::Par>(inst);
  if (inst.op == Op::Map) return loop_operands<Op::Map>(inst);
  return loop_operands<Op::For>(inst);
}

}  // namespace forestvm
