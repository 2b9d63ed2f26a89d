// The verifier's code rules, one pass over the instructions with an abstract state: which registers and
// accumulators are live in the open blocks, over what, and how long their ranges can be.
//
// Two rules carry most of the weight. A range is always taken from the innermost enclosing loop over the same
// axis, so iterations of a parallel loop over rows touch different rows and the work of a program is bounded
// by rows x trees x instructions. And inside parallel loops over trees only an accumulator that was
// privatized for the innermost of them may be written, so iterations never share one.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include <boost/container/static_vector.hpp>
#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/names.hpp>

#include "vm/bytecode/verify.hpp"

namespace forestvm::bytecode {
namespace {

constexpr std::uint32_t kUnbounded = UINT32_MAX;
constexpr unsigned kNone = UINT32_MAX;

std::string number(std::uint64_t value) { return std::to_string(value); }

enum class Axis { Rows, Trees };

/// What is known of a range register.
struct RangeState {
  bool live = false;
  Axis axis = Axis::Rows;
  unsigned loop = kNone;         ///< register of the innermost loop over the axis that it is part of
  bool slice = false;            ///< a slice instruction set it
  bool exact = false;            ///< trees: the range is [lo, hi) itself, not only inside it
  std::uint32_t lo = 0, hi = 0;  ///< trees: bounds
  std::uint32_t max_size = 0;
  std::size_t depth = 0;  ///< blocks that were open when it was set
};

struct AccumulatorState {
  bool live = false;
  std::uint32_t loop = kNone;  ///< pc of the parallel loop over trees in which it may be written
  std::size_t depth = 0;       ///< blocks that were open there
};

struct Block {
  std::uint32_t open;
  unsigned outer_loop[2];  ///< innermost loop registers of both axes outside it
};

class CodeVerifier {
 public:
  explicit CodeVerifier(const Program& program) : program_(program), code_(program.code()) {
    const std::uint32_t trees = program.meta().num_trees;
    ranges_[0] = {true, Axis::Rows, kNone, false, false, 0, 0, kUnbounded, 0};
    ranges_[1] = {true, Axis::Trees, kNone, false, true, 0, trees, trees, 0};
    accumulators_[0].live = true;
  }

  Result<void> run() {
    if (code_.empty()) return refused("code section", "no instructions");
    if (code_.size() >= UINT32_MAX) return refused("code section", "too many instructions");
    for (pc_ = 0; pc_ < code_.size(); ++pc_) {
      if (!known(code_[pc_].op))
        return wrong("unknown opcode " + number(static_cast<unsigned>(code_[pc_].op)));
      FVM_TRY(canonical());
      FVM_TRY(instruction());
    }
    return {};
  }

 private:
  using enum OperandKind;

  Error wrong(const std::string& what) const {
    std::string where = "pc " + number(pc_);
    if (known(code_[pc_].op)) where += std::string(" (") + info(code_[pc_].op).text + ")";
    return refused(where, what);
  }

  /// Fields that the opcode's row does not list are zero; enumerations and register numbers exist.
  Result<void> canonical() const {
    const Inst& inst = code_[pc_];
    std::uint32_t values[kMaxOperands] = {};
    const char* problem = nullptr;
    for_each_operand(inst, [&](unsigned i, OperandKind kind, std::uint32_t value) {
      values[i] = value;
      switch (kind) {
        case RangeOut:
        case RangeIn:
        case Rows:
        case Trees:
          if (value >= kRangeRegisters) problem = "no such range register";
          break;
        case AccOut:
        case AccIn:
          if (value >= program_.section_Accumulators().size()) problem = "no such accumulator";
          break;
        case Output:
          if (!is_declared(static_cast<OutputKind>(value))) problem = "unknown output";
          break;
        case TransformKind:
          if (!is_declared(static_cast<Transform>(value))) problem = "unknown transform";
          break;
        case Rule:
          if (!is_declared(static_cast<ClassRule>(value))) problem = "unknown class rule";
          break;
        case Walker:
          if (value >= program_.section_Walkers().size()) problem = "no such walker";
          break;
        case Step:
          if (value == 0) problem = "a step of 0";
          break;
        case Partner:
        case Loop:
          if (value >= code_.size()) problem = "the other end lies outside the code";
          break;
        case From:
        case To:
          break;
      }
    });
    if (problem != nullptr) return wrong(problem);
    const Inst again = encode(inst.op, values);
    if (!std::equal(again.small, again.small + kSmallOperands, inst.small) ||
        !std::equal(again.wide, again.wide + kWideOperands, inst.wide))
      return wrong("an unused operand field is not zero");
    return {};
  }

  Result<void> instruction() {
    const Inst& inst = code_[pc_];
    switch (inst.op) {
      case Op::Halt:
        if (!blocks_.empty()) return wrong("a block is still open");
        if (pc_ + 1 != code_.size()) return wrong("instructions after the end");
        return {};
      case Op::For:
        return open_loop(operand<Op::For, RangeOut>(inst), operand<Op::For, RangeIn>(inst),
                         operand<Op::For, Step>(inst), operand<Op::For, Partner>(inst));
      case Op::Par:
        return open_loop(operand<Op::Par, RangeOut>(inst), operand<Op::Par, RangeIn>(inst),
                         operand<Op::Par, Step>(inst), operand<Op::Par, Partner>(inst));
      case Op::When:
        return open_block(operand<Op::When, Partner>(inst));
      case Op::End:
        return close_block(operand<Op::End, Partner>(inst));
      case Op::Slice:
        return take_slice(inst);
      case Op::Init:
        return writes(operand<Op::Init, AccOut>(inst), operand<Op::Init, Rows>(inst));
      case Op::Zero:
        return writes(operand<Op::Zero, AccOut>(inst), operand<Op::Zero, Rows>(inst));
      case Op::AddBase:
        return writes(operand<Op::AddBase, AccOut>(inst), operand<Op::AddBase, Rows>(inst));
      case Op::Privatize:
        return privatize(inst);
      case Op::Walk:
        return walk(inst);
      case Op::ReduceDim:
        return reduce_dim(inst);
      case Op::Transform:
        return writes(operand<Op::Transform, AccOut>(inst), operand<Op::Transform, Rows>(inst));
      case Op::Store:
        return stores(operand<Op::Store, AccIn>(inst), operand<Op::Store, Rows>(inst));
      case Op::Label:
        return label(inst);
    }
    return {};
  }

  unsigned& loop_of(Axis axis) { return innermost_loop_[static_cast<unsigned>(axis)]; }

  /// A register that is read: set, over the right axis, part of the innermost loop over it.
  Result<void> reads(std::uint32_t reg) {
    if (!ranges_[reg].live) return wrong("r" + number(reg) + " is read before it is set");
    if (ranges_[reg].loop != loop_of(ranges_[reg].axis))
      return wrong("r" + number(reg) + " is not part of the innermost enclosing loop over " +
                   (ranges_[reg].axis == Axis::Rows ? "rows" : "trees"));
    return {};
  }

  Result<void> reads(std::uint32_t reg, Axis axis) {
    FVM_TRY(reads(reg));
    if (ranges_[reg].axis != axis)
      return wrong("r" + number(reg) + " holds " +
                   (axis == Axis::Rows ? "trees, expected rows" : "rows, expected trees"));
    return {};
  }

  Result<void> sets(std::uint32_t reg) const {
    if (ranges_[reg].live) return wrong("r" + number(reg) + " is set while it is in use");
    return {};
  }

  /// A slice may replace a slice of the same block (an unrolled loop's last iteration), unless a loop that
  /// went through the old one is still to be reduced.
  bool replaceable(std::uint32_t reg) const {
    if (!ranges_[reg].slice || ranges_[reg].depth != blocks_.size()) return false;
    return std::none_of(accumulators_.begin(), accumulators_.end(), [&](const AccumulatorState& a) {
      return a.live && a.loop != kNone && operand<Op::Par, RangeIn>(code_[a.loop]) == reg;
    });
  }

  Result<void> open_block(std::uint32_t partner) {
    if (blocks_.size() == kMaxBlockDepth)
      return wrong("more than " + number(kMaxBlockDepth) + " nested blocks");
    if (partner <= pc_ || code_[partner].op != Op::End || operand<Op::End, Partner>(code_[partner]) != pc_)
      return wrong("its end does not name it");
    blocks_.push_back({static_cast<std::uint32_t>(pc_), {innermost_loop_[0], innermost_loop_[1]}});
    return {};
  }

  Result<void> open_loop(std::uint32_t out, std::uint32_t in, std::uint32_t step, std::uint32_t partner) {
    FVM_TRY(reads(in));
    FVM_TRY(sets(out));
    FVM_TRY(open_block(partner));
    RangeState state = ranges_[in];
    state.loop = out;
    state.slice = false;
    state.exact = false;
    state.max_size = std::min(state.max_size, step);
    state.depth = blocks_.size();
    ranges_[out] = state;
    loop_of(state.axis) = out;
    if (code_[pc_].op == Op::Par && state.axis == Axis::Trees)
      tree_loops_.push_back(static_cast<std::uint32_t>(pc_));
    return {};
  }

  Result<void> close_block(std::uint32_t partner) {
    if (blocks_.empty() || blocks_.back().open != partner)
      return wrong("it does not close the innermost open block");
    for (RangeState& range : ranges_)
      if (range.depth >= blocks_.size()) range = {};
    // Those of this very loop may still be reduced after it, in the block around; no further out, where the
    // register that the loop went through may be another range.
    for (AccumulatorState& accumulator : accumulators_)
      if (accumulator.depth > blocks_.size()) accumulator = {};
    innermost_loop_[0] = blocks_.back().outer_loop[0];
    innermost_loop_[1] = blocks_.back().outer_loop[1];
    if (!tree_loops_.empty() && tree_loops_.back() == partner) tree_loops_.pop_back();
    blocks_.pop_back();
    return {};
  }

  Result<void> take_slice(const Inst& inst) {
    const std::uint32_t out = operand<Op::Slice, RangeOut>(inst), in = operand<Op::Slice, RangeIn>(inst);
    const std::uint32_t from = operand<Op::Slice, From>(inst), to = operand<Op::Slice, To>(inst);
    FVM_TRY(reads(in));
    if (!replaceable(out)) FVM_TRY(sets(out));
    if (from > to) return wrong("it ends before it begins");
    RangeState state = ranges_[in];
    if (state.exact) {
      const std::uint32_t size = state.hi - state.lo;
      state.hi = state.lo + std::min(to, size);
      state.lo += std::min(from, size);
    }
    state.max_size = std::min(to, state.max_size) - std::min(from, state.max_size);
    state.slice = true;
    state.depth = blocks_.size();
    ranges_[out] = state;
    return {};
  }

  /// An accumulator that is written here, and its rows.
  Result<void> writes(std::uint32_t accumulator, std::uint32_t rows) {
    FVM_TRY(reads(rows, Axis::Rows));
    if (!accumulators_[accumulator].live) return wrong("a" + number(accumulator) + " is not privatized here");
    const std::uint32_t loop = accumulators_[accumulator].loop;
    if (loop == innermost_tree_loop()) return {};
    if (loop != kNone && std::find(tree_loops_.begin(), tree_loops_.end(), loop) == tree_loops_.end())
      return wrong("a" + number(accumulator) + " belongs to the loop at pc " + number(loop) +
                   ", which has ended");
    return wrong("a" + number(accumulator) +
                 " is shared by the iterations of the parallel loop over trees at pc " +
                 number(tree_loops_.back()));
  }

  Result<void> stores(std::uint32_t accumulator, std::uint32_t rows) {
    FVM_TRY(writes(accumulator, rows));
    if (!tree_loops_.empty()) return wrong("the output is written inside a parallel loop over trees");
    return {};
  }

  Result<void> label(const Inst& inst) {
    const auto rule = static_cast<ClassRule>(operand<Op::Label, Rule>(inst));
    if (rule != program_.meta().class_rule) return wrong("the rule is not the program's");
    return stores(operand<Op::Label, AccIn>(inst), operand<Op::Label, Rows>(inst));
  }

  Result<void> privatize(const Inst& inst) {
    const std::uint32_t out = operand<Op::Privatize, AccOut>(inst),
                        reg = operand<Op::Privatize, RangeIn>(inst);
    FVM_TRY(reads(operand<Op::Privatize, Rows>(inst), Axis::Rows));
    FVM_TRY(reads(reg, Axis::Trees));
    if (out == 0) return wrong("a0 is the result and cannot be private");
    if (accumulators_[out].live) return wrong("a" + number(out) + " is in use");
    if (tree_loops_.empty() || loop_register(tree_loops_.back()) != reg)
      return wrong("r" + number(reg) + " is not the innermost parallel loop over trees");
    // In a block of its own it might not run, or run in the copies that a loop over rows makes of a machine.
    if (blocks_.back().open != tree_loops_.back())
      return wrong("it does not stand directly in the loop at pc " + number(tree_loops_.back()));
    const AccumulatorDesc& desc = program_.section_Accumulators()[out];
    const AccumulatorState& parent = accumulators_[desc.parent];
    if (!parent.live || parent.loop != innermost_tree_loop(1))
      return wrong("its parent a" + number(desc.parent) + " does not belong to the loop around");
    if (loop_iterations(tree_loops_.back()) > desc.iterations)
      return wrong("the loop has more iterations than a" + number(out) + "'s " + number(desc.iterations));
    accumulators_[out] = {true, tree_loops_.back(), blocks_.size()};
    return {};
  }

  Result<void> reduce_dim(const Inst& inst) {
    const std::uint32_t to = operand<Op::ReduceDim, AccOut>(inst), from = operand<Op::ReduceDim, AccIn>(inst);
    const std::uint32_t loop = operand<Op::ReduceDim, Loop>(inst);
    FVM_TRY(writes(to, operand<Op::ReduceDim, Rows>(inst)));
    if (from == 0 || !accumulators_[from].live || accumulators_[from].loop != loop ||
        program_.section_Accumulators()[from].parent != to)
      return wrong("a" + number(from) + " is not what the loop at pc " + number(loop) + " made of a" +
                   number(to));
    const bool closed = operand<Op::Par, Partner>(code_[loop]) < pc_;
    if (!closed || !ranges_[operand<Op::Par, RangeIn>(code_[loop])].live)
      return wrong("the loop at pc " + number(loop) + " did not end in this block");
    FVM_TRY(reads(operand<Op::Par, RangeIn>(code_[loop]), Axis::Trees));
    accumulators_[from] = {};
    return {};
  }

  Result<void> walk(const Inst& inst) {
    const std::uint32_t trees = operand<Op::Walk, Trees>(inst);
    FVM_TRY(reads(trees, Axis::Trees));
    FVM_TRY(writes(operand<Op::Walk, AccOut>(inst), operand<Op::Walk, Rows>(inst)));
    const WalkerDesc& walker = program_.section_Walkers()[operand<Op::Walk, Walker>(inst)];
    const GroupDesc& group = program_.section_Groups()[walker.group];
    if (ranges_[trees].lo < ranges_[trees].hi &&
        (ranges_[trees].lo < group.tree_begin || ranges_[trees].hi > group.tree_end))
      return wrong("trees " + number(ranges_[trees].lo) + " to " + number(ranges_[trees].hi) +
                   " are not all in group " + number(walker.group));
    return {};
  }

  /// The innermost open parallel loop over trees, or the one `outward` further out; kNone if there is none.
  std::uint32_t innermost_tree_loop(std::size_t outward = 0) const {
    return tree_loops_.size() > outward ? tree_loops_[tree_loops_.size() - 1 - outward] : kNone;
  }

  std::uint32_t loop_register(std::uint32_t par) const { return operand<Op::Par, RangeOut>(code_[par]); }

  std::uint32_t loop_iterations(std::uint32_t par) const {
    return iterations(ranges_[operand<Op::Par, RangeIn>(code_[par])].max_size,
                      operand<Op::Par, Step>(code_[par]));
  }

  const Program& program_;
  std::span<const Inst> code_;
  std::size_t pc_ = 0;
  std::array<RangeState, kRangeRegisters> ranges_{};
  std::array<AccumulatorState, kAccumulators> accumulators_{};
  boost::container::static_vector<Block, kMaxBlockDepth> blocks_;
  boost::container::static_vector<std::uint32_t, kMaxBlockDepth>
      tree_loops_;  ///< open parallel loops over trees, by pc
  unsigned innermost_loop_[2] = {kNone, kNone};
};

bool power_of_two(unsigned value) { return std::has_single_bit(value); }

/// Hops that every tree of a group can take without leaving it.
std::uint32_t safe_hops(const Program& program, const GroupDesc& group) {
  const auto trees = program.section_Trees().subspan(group.first_tree, group.tree_end - group.tree_begin);
  const auto by_depth = [](const TreeDesc& a, const TreeDesc& b) { return a.depth < b.depth; };
  return leaves_hold_still(group.layout) ? std::max_element(trees.begin(), trees.end(), by_depth)->depth
                                         : std::min_element(trees.begin(), trees.end(), by_depth)->depth;
}

Result<void> verify_walkers(const Program& program) {
  const auto walkers = program.section_Walkers();
  std::vector<std::uint32_t> most_hops;  // per group: a file may have many walkers of a large group
  for (const GroupDesc& group : program.section_Groups()) most_hops.push_back(safe_hops(program, group));
  for (std::size_t i = 0; i < walkers.size(); ++i) {
    const WalkerDesc& walker = walkers[i];
    const auto wrong = [&](const std::string& what) {
      return refused("walkers section: w" + number(i), what);
    };
    if (walker.group >= program.section_Groups().size()) return wrong("no group " + number(walker.group));
    if (walker.end > WalkEnd::Exact || walker.order > WalkOrder::TreesOuter || walker.reserved != 0)
      return wrong("unknown end, order or reserved bits");
    if (!power_of_two(walker.interleaved_trees) || !power_of_two(walker.interleaved_rows) ||
        walker.interleaved_trees * walker.interleaved_rows > static_cast<int>(kMaxInterleave))
      return wrong("no walker interleaves " + number(walker.interleaved_trees) + " x " +
                   number(walker.interleaved_rows) + " walks");
    const std::uint32_t most = most_hops[walker.group];
    if (walker.hops > most)
      return wrong(number(walker.hops) + " hops without a leaf check in trees of " + number(most));
  }
  return {};
}

}  // namespace

Result<void> verify_code(const Program& program) {
  FVM_TRY(verify_walkers(program));
  FVM_TRY(CodeVerifier(program).run());
  if (program.code().back().op != Op::Halt) return refused("code section", "it does not end with halt");
  return {};
}

}  // namespace forestvm::bytecode
