// Loop nest -> bytecode: registers for loops, and one walk instruction for each site.
#include <algorithm>
#include <map>
#include <utility>

#include <forestvm/core/interpret.hpp>
#include <forestvm/internal/formatted.hpp>

#include "scheduler/passes/emit.hpp"

namespace forestvm::scheduler {
namespace {

class CodeEmitter {
 public:
  CodeEmitter(const Lowering& lowering, const PlanNumbers& numbers, ProgramParts& parts)
      : lowering_(lowering), numbers_(numbers), parts_(parts) {
    for (const WalkSite& site : lowering.sites)
      if (site.top != kNoLoop) site_at_top_[site.top] = &site;
  }

  /// Emits the plan's code, in blocks for its numbers of rows and its targets, unless it is for all of them.
  Result<void> run() {
    const Plan& plan = lowering_.plan;
    if (plan.least == 0 && plan.most == UINT32_MAX) return run_on_targets();
    const std::uint32_t open = add(Op::Plan, {plan.least, plan.most, 0});
    FVM_TRY(run_on_targets());
    close(open, Op::Plan, {plan.least, plan.most});
    return {};
  }

 private:
  using enum Statement::Kind;

  Result<void> run_on_targets() {
    if (lowering_.plan.targets == TargetSet::Any) return emit(lowering_.nest.body);
    const auto targets = static_cast<std::uint32_t>(lowering_.plan.targets);
    const std::uint32_t open = add(Op::On, {targets, 0});
    FVM_TRY(emit(lowering_.nest.body));
    close(open, Op::On, {targets});
    return {};
  }

  std::uint32_t add(Op op, const OperandValues& operands) { return add_instruction(parts_, op, operands); }

  void close(std::uint32_t open, Op op, OperandValues operands) {
    close_block(parts_, open, op, std::move(operands));
  }

  Result<std::uint32_t> new_register() {
    if (next_register_ == kRangeRegisters)
      return refused("schedule", "its loops need more than {} range registers", kRangeRegisters);
    return next_register_++;
  }

  std::uint32_t register_of(LoopId loop, Axis axis) const {
    return loop == kNoLoop ? (axis == Axis::Rows ? kRowsRegister : kTreesRegister) : registers_.at(loop);
  }

  std::uint32_t accumulator(std::uint32_t number) const { return numbers_.accumulators[number]; }

  std::uint32_t rows_of(const Statement& s) const { return register_of(s.rows, Axis::Rows); }

  void add_slice(std::uint32_t part, std::uint32_t whole, std::uint64_t from, std::uint64_t to) {
    add(Op::Slice, {part, whole, static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)});
    slices_end_ = std::max(slices_end_, part + 1);
  }

  /// Returns the register of the range that a loop steps through; slices it first if the loop covers a part.
  Result<std::uint32_t> range_of(LoopId id) {
    const auto& loop = lowering_.loops[id];
    const std::uint32_t whole = register_of(loop.source, loop.axis);
    if (loop.from == 0 && loop.to == kAll) return whole;
    FVM_ASSIGN(const std::uint32_t part, new_register());
    add_slice(part, whole, loop.from, loop.to);
    return part;
  }

  Result<void> emit(const std::vector<Statement>& body) {
    for (const Statement& s : body) {
      if (parts_.code.size() > kMaxInstructions)
        return refused("schedule", "it unrolls to more than {} instructions", kMaxInstructions);
      FVM_TRY(emit(s));
    }
    return {};
  }

  Result<void> emit(const Statement& s) {
    switch (s.kind) {
      case Loop:
        return emit_loop(s);
      case Walk:
      case Leaves:
        return emit_walk(lowering_.sites[s.site], s);
      case Cache:
        emit_cache(s);
        break;
      case Init:
        add(Op::Init, {accumulator(s.accumulator), rows_of(s)});
        break;
      case Zero:
        add(Op::Zero, {accumulator(s.accumulator), rows_of(s)});
        break;
      case AddBase:
        add(Op::AddBase, {accumulator(s.accumulator), rows_of(s)});
        break;
      case Privatize:
        add(Op::Privatize, {accumulator(s.accumulator), register_of(s.loop, Axis::Trees), rows_of(s)});
        break;
      case ReduceDim:
      case ReduceInplace:
        add(s.kind == ReduceDim ? Op::ReduceDim : Op::ReduceInplace,
            {accumulator(s.accumulator), accumulator(s.from), rows_of(s), last_loop_.at(s.loop),
             static_cast<std::uint32_t>(s.reduction.form), s.reduction.width});
        break;
      case Round:
        add(Op::Round, {accumulator(s.accumulator), accumulator(s.from), rows_of(s)});
        break;
      case SumTrees:
        add(Op::SumTrees, {accumulator(s.accumulator), accumulator(s.from), rows_of(s)});
        break;
      case Encode:
        add(Op::Encode, {rows_of(s)});
        break;
      case When:
      case Unless:
        return emit_when(s);
      case Transform:
        add(Op::Transform,
            {accumulator(s.accumulator), rows_of(s), static_cast<std::uint32_t>(lowering_.model.transform)});
        break;
      case Store:
        add(Op::Store, {accumulator(s.accumulator), rows_of(s)});
        break;
      case StoreTrees:
        add(Op::StoreTrees, {accumulator(s.accumulator), rows_of(s)});
        break;
      case StoreStages:
        add(Op::StoreStages,
            {accumulator(s.accumulator), accumulator(s.from), rows_of(s), s.base_last ? 1u : 0u});
        break;
      case Attribute:
        add(Op::Attribute, {rows_of(s)});
        break;
      case Quantiles:
        add(Op::Quantiles, {rows_of(s)});
        break;
      case Label:
        add(Op::Label,
            {accumulator(s.accumulator), rows_of(s), static_cast<std::uint32_t>(lowering_.model.class_rule)});
        break;
    }
    return {};
  }

  Result<void> emit_when(const Statement& s) {
    const Op op = s.kind == When ? Op::When : Op::Unless;
    const std::uint32_t kind = static_cast<std::uint32_t>(s.output);
    const std::uint32_t registers = next_register_, slices_end = slices_end_;
    const std::uint32_t open = add(op, {kind, 0});
    FVM_TRY(emit(s.body));
    close(open, op, {kind});
    next_register_ = registers;
    slices_end_ = slices_end;
    return {};
  }

  /// Emits a cache statement. Trees are cached group by group, for every walk inside the loop.
  void emit_cache(const Statement& s) {
    const std::uint32_t loop = last_loop_.at(s.loop);
    if (lowering_.loops[s.loop].axis == Axis::Rows) {
      add(Op::CacheRows, {loop, s.ahead});
      return;
    }
    std::vector<std::uint32_t> groups;
    for (const WalkSite& site : lowering_.sites) {
      const bool inside = site.leaf == s.loop || lowering_.loops.inside(site.leaf, s.loop);
      if (!inside || site.tree_begin == site.tree_end) continue;
      for (const WalkerDesc& walker : site.walkers)
        if (std::find(groups.begin(), groups.end(), walker.group) == groups.end())
          groups.push_back(walker.group);
    }
    for (const std::uint32_t group : groups) add(Op::CacheTrees, {loop, s.ahead, numbers_.groups[group]});
  }

  Result<void> emit_loop(const Statement& s) {
    if (const auto site = site_at_top_.find(s.loop); site != site_at_top_.end())
      return emit_walk(*site->second, walk_of(s));
    if (lowering_.loops[s.loop].unroll) return emit_unrolled(s);
    const std::uint32_t saved = next_register_;
    FVM_ASSIGN(const std::uint32_t over, range_of(s.loop));
    // A slice that is no longer needed may be replaced by another slice of its block, but not by a loop.
    const std::uint32_t slices_end = slices_end_;
    next_register_ = std::max(next_register_, slices_end);
    FVM_ASSIGN(const std::uint32_t out, new_register());
    const auto step = static_cast<std::uint32_t>(lowering_.loops[s.loop].step);
    const auto& dimension = lowering_.loops[s.loop].dimension;
    const Op op = dimension ? Op::Map : s.parallel ? Op::Par : Op::For;
    std::vector<std::uint32_t> operands{out, over};
    if (dimension) operands.push_back(static_cast<std::uint32_t>(dimension->value));
    operands.push_back(step);
    const std::uint32_t open = add(op, operands);
    registers_[s.loop] = out;
    last_loop_[s.loop] = open;
    FVM_TRY(emit(s.body));
    close(open, op, operands);
    slices_end_ = slices_end;
    // A later slice may replace this loop's, but not before the reduction that counts its iterations.
    const bool reduced = is_parallel(op) && lowering_.loops[s.loop].axis == Axis::Trees;
    next_register_ = reduced && over >= saved ? saved + 1 : saved;
    return {};
  }

  Result<void> emit_unrolled(const Statement& s) {
    const auto& loop = lowering_.loops[s.loop];
    const std::uint64_t count = lowering_.loops.iterations(s.loop);
    if (count > kMaxInstructions)
      return lowering_.refuse(
          loop.unroll->directive,
          count * loop.step >= kAll
              ? "the loop has no known number of iterations: tile it first"
              : formatted("the loop has {} iterations, more than {} instructions", count, kMaxInstructions));
    FVM_ASSIGN(const std::uint32_t over, range_of(s.loop));
    FVM_ASSIGN(const std::uint32_t part, new_register());
    registers_[s.loop] = part;
    const std::uint32_t saved = next_register_;
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto cut = [&](std::uint64_t at) { return std::min(kAll, at * loop.step); };
      add_slice(part, over, cut(i), cut(i + 1));
      FVM_TRY(emit(s.body));
      next_register_ = saved;
    }
    return {};
  }

  /// Returns the walk (or leaves) statement inside a chain of absorbed loops.
  const Statement& walk_of(const Statement& s) const { return s.kind != Loop ? s : walk_of(s.body.back()); }

  std::uint32_t innermost(const WalkSite& site, Axis axis) const {
    LoopId at = site.leaf;
    while (at != kNoLoop && lowering_.loops[at].axis != axis) at = lowering_.loops[at].parent;
    return register_of(at, axis);
  }

  /// Emits the instruction for the walk (or leaves) statement of a site.
  Result<void> emit_walk(const WalkSite& site, const Statement& s) {
    if (site.tree_begin == site.tree_end) return {};
    const auto range = [&](LoopId top, Axis axis) -> Result<std::uint32_t> {
      if (top == kNoLoop) return innermost(site, axis);
      return range_of(top);
    };
    const std::uint32_t saved = next_register_;
    FVM_ASSIGN(const std::uint32_t trees, range(site.trees_top, Axis::Trees));
    FVM_ASSIGN(const std::uint32_t rows, range(site.rows_top, Axis::Rows));
    next_register_ = saved;
    const std::uint32_t first = walkers(site.walkers, s.atomic);
    const std::uint32_t select = site.specialized == kNoLoop ? kNoSelect : registers_.at(site.specialized);
    if (s.kind == Leaves)
      add(Op::Leaves, {trees, rows, first, select});
    else
      add(Op::Walk, {accumulator(s.accumulator), trees, rows, first, select});
    return {};
  }

  /// Returns the index in the walker table of the first of the wanted walkers, which lie there one after the other.
  /// Appends them if they are not there yet.
  std::uint32_t walkers(std::vector<WalkerDesc> wanted, bool atomic) {
    for (WalkerDesc& walker : wanted) {
      walker.atomic = atomic;
      walker.group = numbers_.groups[walker.group];
    }
    const auto found =
        std::search(parts_.walkers.begin(), parts_.walkers.end(), wanted.begin(), wanted.end());
    const auto first = static_cast<std::uint32_t>(found - parts_.walkers.begin());
    if (found == parts_.walkers.end())
      parts_.walkers.insert(parts_.walkers.end(), wanted.begin(), wanted.end());
    return first;
  }

  const Lowering& lowering_;
  const PlanNumbers& numbers_;
  ProgramParts& parts_;
  std::map<LoopId, const WalkSite*> site_at_top_;
  std::map<LoopId, std::uint32_t> registers_;  ///< register of each loop's current iteration
  std::map<LoopId, std::uint32_t> last_loop_;  ///< pc of each loop's latest instruction
  std::uint32_t next_register_ = std::max(kRowsRegister, kTreesRegister) + 1;
  std::uint32_t slices_end_ = 0;  ///< first register from which on none holds a slice of an open block
};

}  // namespace

std::uint32_t add_instruction(ProgramParts& parts, Op op, const OperandValues& operands) {
  std::uint32_t values[kMaxOperands] = {};
  std::copy(operands.begin(), operands.end(), values);
  parts.code.push_back(pack(op, values));
  return static_cast<std::uint32_t>(parts.code.size() - 1);
}

void close_block(ProgramParts& parts, std::uint32_t open, Op op, OperandValues operands) {
  operands.push_back(add_instruction(parts, Op::End, {open}));
  std::uint32_t values[kMaxOperands] = {};
  std::copy(operands.begin(), operands.end(), values);
  parts.code[open] = pack(op, values);
}

Result<void> emit_code(const Lowering& lowering, const PlanNumbers& numbers, ProgramParts& parts) {
  return CodeEmitter(lowering, numbers, parts).run();
}

}  // namespace forestvm::scheduler
