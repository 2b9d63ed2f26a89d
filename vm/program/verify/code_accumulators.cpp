#include "vm/program/verify/code_accumulators.hpp"

#include <bit>

#include <forestvm/core/accumulators.hpp>
#include <forestvm/core/ranges.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/internal/names.hpp>

namespace forestvm::bytecode {

AccumulatorRules::AccumulatorRules(const Program& program) : RangeRules(program) {
  for (std::uint32_t i = 0; i < program.accumulators().size(); ++i)
    accumulators_[i].live = program.accumulators()[i].parent == i;
}

Result<void> AccumulatorRules::close_block(std::uint32_t partner) {
  FVM_TRY(RangeRules::close_block(partner));
  // Accumulators of this very loop may still be reduced after it, in the block around it, but no further out:
  // there the register that the loop went through may hold another range.
  for (Accumulator& accumulator : accumulators_)
    if (accumulator.depth > depth() + 1) accumulator = {};
  return {};
}

bool AccumulatorRules::awaits_reduction(std::uint32_t reg) const {
  for (const Accumulator& a : accumulators_)
    if (a.live && a.loop != kNoLoop && loop_operands(code_[a.loop]).in == reg) return true;
  return false;
}

Result<void> AccumulatorRules::holds_sums(std::uint32_t accumulator) const {
  if (!is_per_tree(kind_of(accumulator))) return {};
  return wrong("a{} holds per-tree values, expected sums", accumulator);
}

Result<void> AccumulatorRules::holds_scores(std::uint32_t accumulator) const {
  const AccumulatorKind kind = kind_of(accumulator);
  if (kind == AccumulatorKind::F32 || kind == AccumulatorKind::F64) return {};
  return wrong("a{} is neither float32 nor float64", accumulator);
}

Result<void> AccumulatorRules::is_live(std::uint32_t accumulator, std::uint32_t rows) {
  FVM_TRY(reads(rows, Axis::Rows));
  if (!accumulators_[accumulator].live) return wrong("a{} is not privatized here", accumulator);
  return {};
}

Result<void> AccumulatorRules::touches(std::uint32_t accumulator, std::uint32_t rows) {
  FVM_TRY(is_live(accumulator, rows));
  const std::uint32_t loop = accumulators_[accumulator].loop, innermost = innermost_tree_loop();
  if (loop == innermost) return {};
  if (loop != kNoLoop && !is_open(loop))
    return wrong("a{} belongs to the loop at pc {}, which has ended", accumulator, loop);
  return wrong("a{} is shared by the iterations of the parallel loop over trees at pc {}", accumulator,
               innermost);
}

Result<void> AccumulatorRules::writes(std::uint32_t accumulator, std::uint32_t rows) {
  const std::uint32_t in = program_.accumulators()[accumulator].stored_in;
  if (in != accumulator) return wrong("a{} lies in a{}: only reduce_inplace writes it", accumulator, in);
  return touches(accumulator, rows);
}

Result<void> AccumulatorRules::adds(std::uint32_t accumulator, std::uint32_t rows, bool atomic) {
  if (!atomic) return writes(accumulator, rows);
  FVM_TRY(is_live(accumulator, rows));
  FVM_TRY(holds_sums(accumulator));
  const std::uint32_t loop = accumulators_[accumulator].loop;
  if (program_.accumulators()[accumulator].stored_in != accumulator || (loop != kNoLoop && !is_open(loop)))
    return wrong("nothing can be added to a{} here", accumulator);
  return {};
}

Result<void> AccumulatorRules::takes_base(const OperandsOf<Op::Init>& args) {
  FVM_TRY(holds_sums(args.acc_out));
  return writes(args.acc_out, args.rows);
}

Result<void> AccumulatorRules::sums_trees(std::uint32_t to, std::uint32_t from) const {
  if (!is_per_tree(kind_of(from))) return wrong("a{} does not hold per-tree values", from);
  const bool wide = kind_of(from) == AccumulatorKind::PerTree64;
  if (kind_of(to) == (wide ? AccumulatorKind::F64 : AccumulatorKind::F32)) return {};
  return wrong("a{} is not {}", to, wide ? "float64" : "float32");
}

Result<void> AccumulatorRules::converts(std::uint32_t to, std::uint32_t from, std::uint32_t rows) {
  FVM_TRY(holds_scores(to));
  FVM_TRY(touches(from, rows));
  return writes(to, rows);
}

Result<void> AccumulatorRules::privatize(const OperandsOf<Op::Privatize>& args) {
  const auto [out, reg, rows] = args;
  FVM_TRY(reads(rows, Axis::Rows));
  const AccumulatorDesc& desc = program_.accumulators()[out];
  if (desc.parent == out) return wrong("a{} is not private", out);
  if (accumulators_[out].live) return wrong("a{} is in use", out);
  const std::uint32_t loop = innermost_tree_loop();
  if (loop == kNoLoop || loop_operands(code_[loop]).out != reg)
    return wrong("r{} is not the innermost parallel loop over trees", reg);
  // In a block inside the loop the instruction might be skipped, or run on another thread's copy of the machine.
  if (opener(0) != loop) return wrong("it does not stand directly in the loop at pc {}", loop);
  const Accumulator& parent = accumulators_[desc.parent];
  if (!parent.live || parent.loop != innermost_tree_loop(1))
    return wrong("its parent a{} does not belong to the loop around", desc.parent);
  if (loop_iterations(loop) > desc.iterations)
    return wrong("the loop has more iterations than a{}'s {}", out, desc.iterations);
  accumulators_[out] = {true, loop, depth()};
  return {};
}

Result<void> AccumulatorRules::reduce(const OperandsOf<Op::ReduceDim>& args, bool in_place) {
  const auto [to, from, rows, loop, form, width] = args;
  const auto accumulators = program_.accumulators();
  if (from == to || !accumulators_[from].live || accumulators_[from].loop != loop ||
      accumulators[from].parent != to)
    return wrong("a{} is not what the loop at pc {} made of a{}", from, loop, to);
  if (in_place && accumulators[to].stored_in != from) return wrong("a{} does not lie in a{}", to, from);
  FVM_TRY(in_place ? touches(to, rows) : writes(to, rows));
  // The loop ended in this block: had it ended in an inner one, so would the accumulator. So its range is still
  // there.
  accumulators_[from] = {};
  return form_fits(form, width, code_[loop].op);
}

/// Returns the accumulators that hold leaves and that only calls for outputs of single trees use: bit i is for a<i>.
std::uint32_t AccumulatorRules::of_trees() const {
  std::uint32_t apart = 0;
  for (std::uint32_t i = 0; i < program_.accumulators().size(); ++i)
    if (is_per_tree(kind_of(i))) apart |= 1u << i;
  for (std::uint32_t pc = 0; pc < code_.size(); ++pc) {
    const Inst& inst = code_[pc];
    if (inst.op == Op::When) {
      const auto [output, end] = operands<Op::When>(inst);
      if (is_of_trees(static_cast<OutputKind>(output))) pc = end;
      continue;
    }
    for_each_operand(inst, [&](unsigned, OperandKind kind, std::uint32_t value) {
      if (kind == OperandKind::AccIn || kind == OperandKind::AccOut) apart &= ~(1u << value);
    });
  }
  return apart;
}

void AccumulatorRules::map_memory() {
  const AccumulatorDesc* const descs = program_.accumulators().data();
  const std::uint32_t outputs = program_.meta().num_outputs, trees = program_.meta().num_trees;
  const auto count = static_cast<std::uint32_t>(program_.accumulators().size());
  const std::uint32_t apart = of_trees();
  map_.accumulators.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t storage = i, copy_stride = 1;
    while (descs[storage].stored_in != storage) {
      storage = descs[storage].stored_in;
      copy_stride *= descs[storage].iterations;
    }
    map_.accumulators.push_back({storage, copy_stride, accumulator_width(descs[i].kind, outputs, trees),
                                 accumulator_bytes(descs, i, outputs, trees), (apart >> i & 1) != 0});
  }
}

/// Checks that machines can add the copies of a loop in this form.
Result<void> AccumulatorRules::form_fits(ReductionForm form, std::uint32_t width, Op loop) const {
  const bool vector = form == ReductionForm::Vector;
  if (vector ? !std::has_single_bit(width) || width < 2 || width > kMaxReductionWidth : width != 1)
    return wrong("a width of {} for form {}", width, name_of(form));
  if (vector && loop != Op::Par) return wrong("vectors add the copies of a loop on the host only");
  if (form == ReductionForm::Shared && loop != Op::Map)
    return wrong("shared memory holds the copies of a mapped loop only");
  return {};
}

}  // namespace forestvm::bytecode
