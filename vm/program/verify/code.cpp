// The verifier's code rules, one pass over the instructions with an abstract state: which registers and
// accumulators are live in the open blocks, over what, and how long their ranges can be.
//
// Two rules carry most of the weight. A range is always taken from the innermost enclosing loop over the same axis,
// so iterations of a parallel loop over rows touch different rows and the work of a program is bounded by rows x
// trees x instructions. And inside parallel loops over trees only an accumulator that was privatized for the
// innermost of them may be written, so iterations never share one. Accumulators to which iterations add atomically,
// or which have an element for each tree, are exempt.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include <boost/container/static_vector.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/core/ranges.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>

#include "vm/program/verify/verify.hpp"

namespace forestvm::bytecode {
namespace {

constexpr unsigned kNone = UINT32_MAX;

/// The state of a range register: its range, and the block in which it was set.
struct RegisterState {
  bool live = false;
  bool slice = false;        ///< True if a slice instruction set it.
  std::size_t depth = 0;     ///< Blocks that were open when it was set.
  std::uint32_t within = 0;  ///< Loop registers of which its range is a part, itself included, as bits.
  std::uint32_t range = 0;   ///< Number of its range in the map.
};

struct AccumulatorState {
  bool live = false;
  std::uint32_t loop = kNone;  ///< Pc of the parallel loop over trees in which it may be written.
  std::size_t depth = 0;       ///< Blocks that were open when it was privatized.
};

struct Block {
  std::uint32_t open;           ///< Pc of the instruction that opened it.
  std::uint32_t outer_loop[2];  ///< Innermost iterations of both axes outside it, as ranges of the map.
  RowCounts outer_calls;        ///< Calls in which it is reached.
};

class CodeVerifier {
 public:
  explicit CodeVerifier(const Program& program) : program_(program), code_(program.code()) {
    const std::uint32_t trees = program.meta().num_trees;
    map_.insts.resize(code_.size());
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
    for (std::uint32_t i = 0; i < program.accumulators().size(); ++i)
      accumulators_[i].live = program.accumulators()[i].parent == i;
  }

  Result<CodeMap> run() {
    for (pc_ = 0; pc_ < code_.size(); ++pc_) FVM_TRY(instruction());
    if (code_.back().op != Op::Halt) return refused("code section", "it does not end with halt");
    return std::move(map_);
  }

 private:
  Failure wrong(std::string_view what) const { return code_error(program_, pc_, what); }

  const RangeFacts& facts(std::uint32_t reg) const { return map_.ranges[registers_[reg].range]; }

  // NOLINTNEXTLINE(readability-function-size): one case for each opcode
  Result<void> instruction() {
    const Inst& inst = code_[pc_];
    map_.insts[pc_].calls = calls_;
    switch (inst.op) {
      case Op::Halt:
        if (!blocks_.empty()) return wrong("a block is still open");
        if (pc_ + 1 != code_.size()) return wrong("instructions after the end");
        return {};
      case Op::For:
      case Op::Par:
      case Op::Map:
        return open_loop(inst);
      case Op::When:
        return open_block(operands<Op::When>(inst).partner);
      case Op::Unless:
        return open_block(operands<Op::Unless>(inst).partner);
      case Op::Plan:
        return open_plan(operands<Op::Plan>(inst));
      case Op::End:
        return close_block(operands<Op::End>(inst).partner);
      case Op::Slice:
        return take_slice(inst);
      case Op::CacheRows:
        return caches(operands<Op::CacheRows>(inst).loop, Axis::Rows);
      case Op::CacheTrees:
        return caches(operands<Op::CacheTrees>(inst).loop, Axis::Trees);
      case Op::Init:
        return takes_base(operands<Op::Init>(inst));
      case Op::Zero: {
        const auto [to, rows] = operands<Op::Zero>(inst);
        return writes(to, rows);
      }
      case Op::AddBase: {
        const auto args = operands<Op::AddBase>(inst);
        if (program_.meta().scale != 1) FVM_TRY(holds_scores(args.acc_out));
        return takes_base(args);
      }
      case Op::Privatize:
        return privatize(inst);
      case Op::Walk:
        return walk(inst);
      case Op::Leaves:
        return leaves(inst);
      case Op::ReduceDim:
        return reduce(operands<Op::ReduceDim>(inst), false);
      case Op::ReduceInplace:
        return reduce(operands<Op::ReduceInplace>(inst), true);
      case Op::Round: {
        const auto [to, from, rows] = operands<Op::Round>(inst);
        FVM_TRY(holds_sums(from));
        return converts(to, from, rows);
      }
      case Op::SumTrees: {
        const auto [to, from, rows] = operands<Op::SumTrees>(inst);
        FVM_TRY(sums_trees(to, from));
        return converts(to, from, rows);
      }
      case Op::Transform: {
        const auto [accumulator, rows, kind] = operands<Op::Transform>(inst);
        FVM_TRY(holds_scores(accumulator));
        if (kind == Transform::Uncertainty && program_.meta().num_outputs != 2)
          return wrong("the transform is for two outputs");
        if (kind == Transform::WeightedMedian && program_.meta().num_outputs % 2 != 0)
          return wrong("the transform is for pairs of outputs");
        return writes(accumulator, rows);
      }
      case Op::Store: {
        const auto [from, rows] = operands<Op::Store>(inst);
        return stores(from, rows);
      }
      case Op::Label:
        return label(inst);
      case Op::StoreTrees: {
        const auto [from, rows] = operands<Op::StoreTrees>(inst);
        if (!is_per_tree(kind_of(from))) return wrong(formatted("a{} does not hold per-tree values", from));
        FVM_TRY(touches(from, rows));
        return stores_leaves();
      }
      case Op::StoreStages: {
        const auto [to, from, rows, base_last] = operands<Op::StoreStages>(inst);
        FVM_TRY(sums_trees(to, from));
        FVM_TRY(converts(to, from, rows));
        return stores_leaves();
      }
      case Op::Encode:
        return encodes(operands<Op::Encode>(inst).rows);
      case Op::Explain:
        return explains(operands<Op::Explain>(inst).rows);
      case Op::Attribute:
        if (program_.attribution_base().empty())
          return wrong("the program's leaves attribute nothing to features");
        return writes_rows(operands<Op::Attribute>(inst).rows);
    }
    return {};
  }

  std::uint32_t& loop_of(Axis axis) { return innermost_loop_[static_cast<unsigned>(axis)]; }

  /// Checks that a register may be read: it is set, and is part of the innermost loop over its axis.
  Result<void> reads(std::uint32_t reg) {
    if (!registers_[reg].live) return wrong(formatted("r{} is read before it is set", reg));
    if (facts(reg).loop != loop_of(facts(reg).axis))
      return wrong(formatted("r{} is not part of the innermost enclosing loop over {}", reg,
                             facts(reg).axis == Axis::Rows ? "rows" : "trees"));
    return {};
  }

  Result<void> reads(std::uint32_t reg, Axis axis) {
    FVM_TRY(reads(reg));
    if (facts(reg).axis != axis)
      return wrong(formatted("r{} holds {}", reg,
                             axis == Axis::Rows ? "trees, expected rows" : "rows, expected trees"));
    InstFacts& facts = map_.insts[pc_];
    (axis == Axis::Rows ? facts.rows : facts.trees) = registers_[reg].range;
    return {};
  }

  Result<void> can_set(std::uint32_t reg) const {
    if (registers_[reg].live) return wrong(formatted("r{} is set while it is in use", reg));
    return {};
  }

  /// Gives a register a range that is taken from another's.
  void set(std::uint32_t reg, std::uint32_t in, RangeFacts range, bool slice) {
    const auto number = static_cast<std::uint32_t>(map_.ranges.size());
    map_.insts[pc_].out = number;
    map_.insts[pc_].in = range.source = registers_[in].range;
    RegisterState state{true, slice, blocks_.size(), registers_[in].within, number};
    if (!slice) {
      state.within |= 1u << reg;
      range.loop = number;
      loop_of(range.axis) = number;
    }
    registers_[reg] = state;
    map_.ranges.push_back(range);
  }

  /// Returns whether a slice may replace the range of a register: it is a slice of the same block (as in the
  /// iterations of an unrolled loop), and no loop that went through it is still to be reduced.
  bool replaceable(std::uint32_t reg) const {
    if (!registers_[reg].slice || registers_[reg].depth != blocks_.size()) return false;
    return std::none_of(accumulators_.begin(), accumulators_.end(), [&](const AccumulatorState& a) {
      return a.live && a.loop != kNone && loop_operands(code_[a.loop]).in == reg;
    });
  }

  Result<void> open_block(std::uint32_t partner) {
    if (blocks_.size() == kMaxBlockDepth)
      return wrong(formatted("more than {} nested blocks", kMaxBlockDepth));
    if (partner <= pc_ || code_[partner].op != Op::End || operands<Op::End>(code_[partner]).partner != pc_)
      return wrong("its end does not name it");
    blocks_.push_back({static_cast<std::uint32_t>(pc_), {innermost_loop_[0], innermost_loop_[1]}, calls_});
    return {};
  }

  Result<void> open_plan(const OperandsOf<Op::Plan>& args) {
    if (args.least > args.most) return wrong("no call has so many rows");
    FVM_TRY(open_block(args.partner));
    calls_ = {std::max(calls_.least, args.least), std::min(calls_.most, args.most)};
    return {};
  }

  Result<void> open_loop(const Inst& inst) {
    const LoopOperands loop = loop_operands(inst);
    FVM_TRY(reads(loop.in));
    FVM_TRY(can_set(loop.out));
    FVM_TRY(dimension_is_free(inst));
    FVM_TRY(open_block(loop.partner));
    RangeFacts range = facts(loop.in);
    range.exact = false;
    range.nonempty = true;
    range.max_size = std::min(range.max_size, loop.step);
    range.from = 0;
    range.to = range.max_size;
    range.step = loop.step;
    set(loop.out, loop.in, range, false);
    if (is_parallel(inst.op) && range.axis == Axis::Trees)
      tree_loops_.push_back(static_cast<std::uint32_t>(pc_));
    return {};
  }

  /// Checks that no loop around is mapped to the same dimension: a thread has one index in each dimension of
  /// a launch.
  Result<void> dimension_is_free(const Inst& inst) const {
    if (inst.op != Op::Map) return {};
    const LaunchDimension dimension = operands<Op::Map>(inst).dimension;
    for (const Block& block : blocks_)
      if (code_[block.open].op == Op::Map && operands<Op::Map>(code_[block.open]).dimension == dimension)
        return wrong(formatted("the loop at pc {} around it has the same dimension", block.open));
    return {};
  }

  Result<void> close_block(std::uint32_t partner) {
    if (blocks_.empty() || blocks_.back().open != partner)
      return wrong("it does not close the innermost open block");
    for (RegisterState& state : registers_)
      if (state.depth >= blocks_.size()) state = {};
    // Accumulators of this very loop may still be reduced after it, in the block around it, but no further out:
    // there the register that the loop went through may hold another range.
    for (AccumulatorState& accumulator : accumulators_)
      if (accumulator.depth > blocks_.size()) accumulator = {};
    innermost_loop_[0] = blocks_.back().outer_loop[0];
    innermost_loop_[1] = blocks_.back().outer_loop[1];
    calls_ = blocks_.back().outer_calls;
    if (!tree_loops_.empty() && tree_loops_.back() == partner) tree_loops_.pop_back();
    blocks_.pop_back();
    return {};
  }

  Result<void> take_slice(const Inst& inst) {
    const auto args = operands<Op::Slice>(inst);
    const std::uint32_t out = args.range_out, in = args.range_in, from = args.from, to = args.to;
    FVM_TRY(reads(in));
    if (!replaceable(out)) FVM_TRY(can_set(out));
    if (from > to) return wrong("it ends before it begins");
    RangeFacts range = facts(in);
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

  /// Checks that `loop` is a loop whose block is open, over this axis.
  Result<void> caches(std::uint32_t loop, Axis axis) {
    const bool open =
        is_loop(code_[loop].op) &&
        std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) { return block.open == loop; });
    if (!open) return wrong(formatted("pc {} is not a loop around it", loop));
    const std::uint32_t range = map_.insts[loop].out;
    if (map_.ranges[range].axis != axis)
      return wrong(
          formatted("the loop at pc {} does not go over {}", loop, axis == Axis::Rows ? "rows" : "trees"));
    (axis == Axis::Rows ? map_.insts[pc_].rows : map_.insts[pc_].trees) = range;
    return {};
  }

  AccumulatorKind kind_of(std::uint32_t accumulator) const {
    return program_.accumulators()[accumulator].kind;
  }

  Result<void> holds_sums(std::uint32_t accumulator) const {
    if (!is_per_tree(kind_of(accumulator))) return {};
    return wrong(formatted("a{} holds per-tree values, expected sums", accumulator));
  }

  /// Checks an accumulator that starts from the base scores, or to which they are added.
  Result<void> takes_base(const OperandsOf<Op::Init>& args) {
    FVM_TRY(holds_sums(args.acc_out));
    return writes(args.acc_out, args.rows);
  }

  /// Checks that per-tree values are added to sums of the same type.
  Result<void> sums_trees(std::uint32_t to, std::uint32_t from) const {
    if (!is_per_tree(kind_of(from))) return wrong(formatted("a{} does not hold per-tree values", from));
    const bool wide = kind_of(from) == AccumulatorKind::PerTree64;
    if (kind_of(to) == (wide ? AccumulatorKind::F64 : AccumulatorKind::F32)) return {};
    return wrong(formatted("a{} is not {}", to, wide ? "float64" : "float32"));
  }

  /// Checks that an accumulator holds scores, which transforms and outputs take.
  Result<void> holds_scores(std::uint32_t accumulator) const {
    const AccumulatorKind kind = kind_of(accumulator);
    if (kind == AccumulatorKind::F32 || kind == AccumulatorKind::F64) return {};
    return wrong(formatted("a{} is neither float32 nor float64", accumulator));
  }

  /// Checks an accumulator that is computed from another.
  Result<void> converts(std::uint32_t to, std::uint32_t from, std::uint32_t rows) {
    FVM_TRY(holds_scores(to));
    FVM_TRY(touches(from, rows));
    return writes(to, rows);
  }

  /// Checks that an accumulator may be written here, for these rows.
  Result<void> writes(std::uint32_t accumulator, std::uint32_t rows) {
    const std::uint32_t in = program_.accumulators()[accumulator].stored_in;
    if (in != accumulator)
      return wrong(formatted("a{} lies in a{}: only reduce_inplace writes it", accumulator, in));
    return touches(accumulator, rows);
  }

  /// Checks that nothing else writes an accumulator meanwhile.
  Result<void> touches(std::uint32_t accumulator, std::uint32_t rows) {
    FVM_TRY(is_live(accumulator, rows));
    const std::uint32_t loop = accumulators_[accumulator].loop;
    if (loop == innermost_tree_loop()) return {};
    if (loop != kNone && !is_open(loop))
      return wrong(formatted("a{} belongs to the loop at pc {}, which has ended", accumulator, loop));
    return wrong(formatted("a{} is shared by the iterations of the parallel loop over trees at pc {}",
                           accumulator, tree_loops_.back()));
  }

  Result<void> is_live(std::uint32_t accumulator, std::uint32_t rows) {
    FVM_TRY(reads(rows, Axis::Rows));
    if (!accumulators_[accumulator].live) return wrong(formatted("a{} is not privatized here", accumulator));
    return {};
  }

  bool is_open(std::uint32_t tree_loop) const {
    return std::find(tree_loops_.begin(), tree_loops_.end(), tree_loop) != tree_loops_.end();
  }

  /// Checks that an accumulator may be added to, atomically or not.
  Result<void> adds(std::uint32_t accumulator, std::uint32_t rows, bool atomic) {
    if (!atomic) return writes(accumulator, rows);
    FVM_TRY(is_live(accumulator, rows));
    FVM_TRY(holds_sums(accumulator));
    const AccumulatorDesc& desc = program_.accumulators()[accumulator];
    const std::uint32_t loop = accumulators_[accumulator].loop;
    if (desc.stored_in != accumulator || (loop != kNone && !is_open(loop)))
      return wrong(formatted("nothing can be added to a{} here", accumulator));
    return {};
  }

  Result<void> stores(std::uint32_t accumulator, std::uint32_t rows) {
    FVM_TRY(holds_scores(accumulator));
    FVM_TRY(writes(accumulator, rows));
    if (!tree_loops_.empty()) return wrong("the output is written inside a parallel loop over trees");
    return {};
  }

  /// Checks that outputs of single trees or rounds may be written here.
  Result<void> stores_leaves() const {
    if (program_.round_begins().empty()) return wrong("the program has no rounds");
    if (!tree_loops_.empty()) return wrong("the output is written inside a parallel loop over trees");
    return {};
  }

  Result<void> label(const Inst& inst) {
    const auto [from, rows, rule] = operands<Op::Label>(inst);
    if (rule != program_.meta().class_rule) return wrong("the rule is not the program's");
    return stores(from, rows);
  }

  Result<void> privatize(const Inst& inst) {
    const auto [out, reg, rows] = operands<Op::Privatize>(inst);
    FVM_TRY(reads(rows, Axis::Rows));
    if (program_.accumulators()[out].parent == out) return wrong(formatted("a{} is not private", out));
    if (accumulators_[out].live) return wrong(formatted("a{} is in use", out));
    if (tree_loops_.empty() || loop_register(tree_loops_.back()) != reg)
      return wrong(formatted("r{} is not the innermost parallel loop over trees", reg));
    // In a block inside the loop the instruction might be skipped, or run on another thread's copy of the machine.
    if (blocks_.back().open != tree_loops_.back())
      return wrong(formatted("it does not stand directly in the loop at pc {}", tree_loops_.back()));
    const AccumulatorDesc& desc = program_.accumulators()[out];
    const AccumulatorState& parent = accumulators_[desc.parent];
    if (!parent.live || parent.loop != innermost_tree_loop(1))
      return wrong(formatted("its parent a{} does not belong to the loop around", desc.parent));
    if (loop_iterations(tree_loops_.back()) > desc.iterations)
      return wrong(formatted("the loop has more iterations than a{}'s {}", out, desc.iterations));
    accumulators_[out] = {true, tree_loops_.back(), blocks_.size()};
    return {};
  }

  Result<void> reduce(const OperandsOf<Op::ReduceDim>& args, bool in_place) {
    const auto [to, from, rows, loop, form, width] = args;
    const auto accumulators = program_.accumulators();
    if (from == to || !accumulators_[from].live || accumulators_[from].loop != loop ||
        accumulators[from].parent != to)
      return wrong(formatted("a{} is not what the loop at pc {} made of a{}", from, loop, to));
    if (in_place && accumulators[to].stored_in != from)
      return wrong(formatted("a{} does not lie in a{}", to, from));
    FVM_TRY(in_place ? touches(to, rows) : writes(to, rows));
    // The loop ended in this block: had it ended in an inner one, so would the accumulator. So its range is still
    // there.
    accumulators_[from] = {};
    return form_fits(form, width, code_[loop].op);
  }

  Result<void> form_fits(ReductionForm form, std::uint32_t width, Op loop) const {
    const bool vector = form == ReductionForm::Vector;
    if (vector ? !std::has_single_bit(width) || width < 2 || width > kMaxReductionWidth : width != 1)
      return wrong(formatted("a width of {} for form {}", width, name_of(form)));
    if (vector && loop != Op::Par) return wrong("vectors add the copies of a loop on the host only");
    if (form == ReductionForm::Shared && loop != Op::Map)
      return wrong("shared memory holds the copies of a mapped loop only");
    return {};
  }

  Result<void> walk(const Inst& inst) {
    const auto [accumulator, trees, rows, walker, select] = operands<Op::Walk>(inst);
    bool atomic = false;
    FVM_TRY(walks(trees, walker, select, atomic));
    map_.insts[pc_].walk_sums = accumulator;
    // Parallel iterations walk different trees, each of which has an element of its own.
    if (is_per_tree(kind_of(accumulator)) && !atomic) return is_live(accumulator, rows);
    return adds(accumulator, rows, atomic);
  }

  /// Checks that rows may be encoded here. Parallel iterations over trees would write each other's codes.
  Result<void> encodes(std::uint32_t rows) {
    if (program_.columns().empty()) return wrong("the program has no encoder");
    if (innermost_tree_loop() != kNone) return wrong("rows are encoded inside a parallel loop over trees");
    return reads(rows, Axis::Rows);
  }

  /// Checks that contributions may be computed and written here.
  Result<void> explains(std::uint32_t rows) {
    if (program_.meta().contributions == 0) return wrong("the program has no paths to explain");
    return writes_rows(rows);
  }

  /// Checks that the output of some rows may be written here.
  Result<void> writes_rows(std::uint32_t rows) {
    if (!tree_loops_.empty()) return wrong("the output is written inside a parallel loop over trees");
    return reads(rows, Axis::Rows);
  }

  Result<void> leaves(const Inst& inst) {
    const auto [trees, rows, walker, select] = operands<Op::Leaves>(inst);
    bool atomic = false;
    FVM_TRY(reads(rows, Axis::Rows));
    return walks(trees, walker, select, atomic);
  }

  /// Checks that trees lie in the group of the walker, or of each walker that an iteration selects. Sets
  /// `atomic` to whether the walkers are.
  Result<void> walks(std::uint32_t trees, std::uint32_t walker, std::uint32_t select, bool& atomic) {
    FVM_TRY(reads(trees, Axis::Trees));
    atomic = program_.walkers()[walker].atomic != 0;
    map_.insts[pc_].first_walker = walker;
    map_.insts[pc_].walker_count = 1;
    if (select == kNoSelect) return walks_group(walker, {facts(trees).lo, facts(trees).hi, 0});
    const RangeFacts& by = facts(select);
    const RangeFacts& over = map_.ranges[by.source];
    if (!registers_[select].live || by.step == 0 || !over.exact ||
        (registers_[trees].within >> select & 1) == 0)
      return wrong(formatted("r{} is not a loop over known trees that r{} is part of", select, trees));
    const Range all{over.lo, over.hi, 0};
    const std::uint32_t count = iterations(all.size(), by.step);
    if (count > kMaxSpecialized || count > program_.walkers().size() - walker)
      return wrong(formatted("a walker for each of {} iterations", count));
    for (std::uint32_t i = 0; i < count; ++i) {
      if ((program_.walkers()[walker + i].atomic != 0) != atomic)
        return wrong("some of its walkers are atomic, others are not");
      FVM_TRY(walks_group(walker + i, chunk(all, by.step, i)));
    }
    map_.insts[pc_].select = registers_[select].range;
    map_.insts[pc_].walker_count = count;
    return {};
  }

  Result<void> walks_group(std::uint32_t walker, const Range& trees) const {
    const std::uint32_t index = program_.walkers()[walker].group;
    const GroupDesc& group = program_.groups()[index];
    if (trees.size() != 0 && (trees.begin < group.tree_begin || trees.end > group.tree_end))
      return wrong(formatted("trees {} to {} are not all in group {}", trees.begin, trees.end, index));
    return {};
  }

  /// Returns the innermost open parallel loop over trees, or the one `outward` further out; kNone if there is
  /// none.
  std::uint32_t innermost_tree_loop(std::size_t outward = 0) const {
    return tree_loops_.size() > outward ? tree_loops_[tree_loops_.size() - 1 - outward] : kNone;
  }

  std::uint32_t loop_register(std::uint32_t par) const { return loop_operands(code_[par]).out; }

  std::uint32_t loop_iterations(std::uint32_t par) const {
    const LoopOperands loop = loop_operands(code_[par]);
    return iterations(facts(loop.in).max_size, loop.step);
  }

  const Program& program_;
  std::span<const Inst> code_;
  std::size_t pc_ = 0;
  CodeMap map_;
  std::array<RegisterState, kRangeRegisters> registers_{};
  std::array<AccumulatorState, kAccumulators> accumulators_{};
  boost::container::static_vector<Block, kMaxBlockDepth> blocks_;
  /// Pcs of the open parallel loops over trees.
  boost::container::static_vector<std::uint32_t, kMaxBlockDepth> tree_loops_;
  std::uint32_t innermost_loop_[2] = {kCallRows, kAllTrees};
  RowCounts calls_{0, UINT32_MAX};  ///< Calls that run the instruction.
};

}  // namespace

Result<CodeMap> verify_code(const Program& program) { return CodeVerifier(program).run(); }

}  // namespace forestvm::bytecode

std::uint32_t forestvm::max_size(const CodeMap& map, std::uint32_t range, std::uint32_t call_rows) {
  if (range == kCallRows) return call_rows;
  const RangeFacts& facts = map.ranges[range];
  if (facts.axis == Axis::Trees) return facts.max_size;
  if (facts.step != 0) return std::min(max_size(map, facts.source, call_rows), facts.step);
  const std::uint32_t whole = max_size(map, facts.loop, call_rows);
  return std::min(facts.to, whole) - std::min(facts.from, whole);
}
