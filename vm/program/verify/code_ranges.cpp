#include "vm/program/verify/code_ranges.hpp"

#include <algorithm>

#include <forestvm/core/ranges.hpp>

namespace forestvm::bytecode {

RangeRules::RangeRules(const Program& program) : BlockRules(program) {
  const std::uint32_t trees = program.meta().num_trees;
  map_.ranges = {{.axis = Axis::Rows, .nonempty = true, .max_size = UINT32_MAX, .to = UINT32_MAX},
                 {.axis = Axis::Trees,
                  .exact = true,
                  .nonempty = trees != 0,
                  .hi = trees,
                  .max_size = trees,
                  .loop = kAllTrees,
                  .to = trees}};
  registers_[kRowsRegister] = {.live = true, .range = kCallRows};
  registers_[kTreesRegister] = {.live = true, .range = kAllTrees};
}

/// Returns the pc of the innermost open loop over an axis of which `counts` is true, or of the one `outward` further
/// out; kNoLoop if there is none.
std::uint32_t RangeRules::enclosing_loop(bool (*counts)(Op), Axis axis, unsigned outward) const {
  for (std::size_t i = 0; i < depth(); ++i) {
    const std::uint32_t pc = opener(i);
    if (counts(code_[pc].op) && map_.ranges[map_.insts[pc].out].axis == axis && outward-- == 0) return pc;
  }
  return kNoLoop;
}

/// Checks that a register may be read: it is set, and is part of the innermost loop over its axis.
Result<void> RangeRules::reads(std::uint32_t reg) const {
  if (!is_live(reg)) return wrong("r{} is read before it is set", reg);
  const RangeFacts& range = range_in(reg);
  const bool rows = range.axis == Axis::Rows;
  const std::uint32_t loop = enclosing_loop(is_loop, range.axis, 0);
  if (range.loop != (loop != kNoLoop ? map_.insts[loop].out : rows ? kCallRows : kAllTrees))
    return wrong("r{} is not part of the innermost enclosing loop over {}", reg, rows ? "rows" : "trees");
  return {};
}

Result<void> RangeRules::reads(std::uint32_t reg, Axis axis) {
  FVM_TRY(reads(reg));
  const bool rows = axis == Axis::Rows;
  if (range_in(reg).axis != axis)
    return wrong("r{} holds {}", reg, rows ? "trees, expected rows" : "rows, expected trees");
  (rows ? facts().rows : facts().trees) = registers_[reg].range;
  return {};
}

Result<void> RangeRules::can_set(std::uint32_t reg) const {
  if (is_live(reg)) return wrong("r{} is set while it is in use", reg);
  return {};
}

/// Gives a register a range that is taken from another's.
void RangeRules::set(std::uint32_t reg, std::uint32_t in, RangeFacts range, bool slice) {
  const auto number = static_cast<std::uint32_t>(map_.ranges.size());
  facts().out = number;
  facts().in = range.source = registers_[in].range;
  Register state{true, slice, depth(), registers_[in].within, number};
  if (!slice) {
    state.within |= 1u << reg;
    range.loop = number;
  }
  registers_[reg] = state;
  map_.ranges.push_back(range);
}

Result<void> RangeRules::open_loop(const Inst& inst) {
  const LoopOperands loop = loop_operands(inst);
  FVM_TRY(reads(loop.in));
  FVM_TRY(can_set(loop.out));
  FVM_TRY(open_block(loop.partner));
  RangeFacts range = range_in(loop.in);
  range.exact = false;
  range.nonempty = true;
  range.max_size = std::min(range.max_size, loop.step);
  range.from = 0;
  range.to = range.max_size;
  range.step = loop.step;
  set(loop.out, loop.in, range, false);
  return {};
}

Result<void> RangeRules::close_block(std::uint32_t partner) {
  FVM_TRY(BlockRules::close_block(partner));
  for (Register& state : registers_)
    if (state.depth > depth()) state = {};
  return {};
}

Result<void> RangeRules::take_slice(const OperandsOf<Op::Slice>& args, bool awaited) {
  const std::uint32_t out = args.range_out, in = args.range_in, from = args.from, to = args.to;
  FVM_TRY(reads(in));
  if (awaited || !registers_[out].slice || registers_[out].depth != depth()) FVM_TRY(can_set(out));
  if (from > to) return wrong("it ends before it begins");
  RangeFacts range = range_in(in);
  if (range.exact) {
    const std::uint32_t size = range.hi - range.lo;
    range.hi = range.lo + std::min(to, size);
    range.lo += std::min(from, size);
  }
  range.nonempty = range.exact ? range.lo < range.hi : range.nonempty && from == 0 && to != 0;
  range.max_size = std::min(to, range.max_size) - std::min(from, range.max_size);
  const auto cut = [&](std::uint32_t at) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{range.from} + at, range.to));
  };
  const std::uint32_t first = cut(from), end = cut(to);
  range.from = first;
  range.to = end;
  range.step = 0;
  set(out, in, range, true);
  return {};
}

Result<void> RangeRules::caches(std::uint32_t loop, Axis axis) {
  if (!is_loop(code_[loop].op) || !is_open(loop)) return wrong("pc {} is not a loop around it", loop);
  const std::uint32_t range = map_.insts[loop].out;
  const bool rows = axis == Axis::Rows;
  if (map_.ranges[range].axis != axis)
    return wrong("the loop at pc {} does not go over {}", loop, rows ? "rows" : "trees");
  (rows ? facts().rows : facts().trees) = range;
  return {};
}

std::uint32_t RangeRules::loop_iterations(std::uint32_t loop) const {
  const LoopOperands operands = loop_operands(code_[loop]);
  return iterations(range_in(operands.in).max_size, operands.step);
}

}  // namespace forestvm::bytecode

std::uint32_t forestvm::max_size(const CodeMap& map, std::uint32_t range, std::uint32_t call_rows) {
  if (range == kCallRows) return call_rows;
  const RangeFacts& facts = map.ranges[range];
  if (facts.axis == Axis::Trees) return facts.max_size;
  if (facts.step != 0) return std::min(max_size(map, facts.source, call_rows), facts.step);
  const std::uint32_t whole = max_size(map, facts.loop, call_rows);
  return std::min(facts.to, whole) - std::min(facts.from, whole);
}
