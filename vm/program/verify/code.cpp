// The verifier's code rules: one pass over the instructions with an abstract state, in layers that each prove one
// thing. Blocks nest (code_blocks), ranges of iterations are disjoint and bounded (code_ranges), parallel iterations
// share no accumulator (code_accumulators), and walks stay inside the groups of their walkers (code_walks). This file
// has the rules of each opcode in these terms, and the rules of what is encoded and written for the caller.
#include <utility>

#include <forestvm/core/sums.hpp>

#include "vm/program/verify/code_walks.hpp"

namespace forestvm::bytecode {
namespace {

class CodeVerifier : WalkRules {
 public:
  explicit CodeVerifier(const Program& program) : WalkRules(program) {}

  Result<CodeMap> run() {
    for (pc_ = 0; pc_ < code_.size(); ++pc_) FVM_TRY(instruction(code_[pc_]));
    if (code_.back().op != Op::Halt) return refused("code section", "it does not end with halt");
    map_memory();
    return std::move(map_);
  }

 private:
  // NOLINTNEXTLINE(readability-function-size): one case for each opcode
  Result<void> instruction(const Inst& inst) {
    facts().calls = calls_;
    switch (inst.op) {
      case Op::Halt:
        if (depth() != 0) return wrong("a block is still open");
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
      case Op::On:
        return open_block(operands<Op::On>(inst).partner);
      case Op::Plan:
        return open_plan(operands<Op::Plan>(inst));
      case Op::End:
        return close_block(operands<Op::End>(inst).partner);
      case Op::Slice: {
        const auto args = operands<Op::Slice>(inst);
        return take_slice(args, awaits_reduction(args.range_out));
      }
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
        return privatize(operands<Op::Privatize>(inst));
      case Op::Walk:
        return walk(operands<Op::Walk>(inst));
      case Op::Leaves:
        return leaves(operands<Op::Leaves>(inst));
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
      case Op::Label: {
        const auto [from, rows, rule] = operands<Op::Label>(inst);
        if (rule != program_.meta().class_rule) return wrong("the rule is not the program's");
        return stores(from, rows);
      }
      case Op::StoreTrees: {
        const auto [from, rows] = operands<Op::StoreTrees>(inst);
        if (!is_per_tree(kind_of(from))) return wrong("a{} does not hold per-tree values", from);
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
        if (program_.meta().contributions == 0) return wrong("the program has no paths to explain");
        return writes_rows(operands<Op::Explain>(inst).rows);
      case Op::Attribute:
        if (program_.attribution_base().empty())
          return wrong("the program's leaves attribute nothing to features");
        return writes_rows(operands<Op::Attribute>(inst).rows);
      case Op::Quantiles:
        if (program_.targets().empty()) return wrong("the program's leaves keep no targets");
        return writes_rows(operands<Op::Quantiles>(inst).rows);
    }
    return {};
  }

  /// Checks that what is written for the caller is written once, not by each of several parallel iterations.
  Result<void> writes_once() const {
    if (innermost_tree_loop() == kNoLoop) return {};
    return wrong("the output is written inside a parallel loop over trees");
  }

  Result<void> stores(std::uint32_t accumulator, std::uint32_t rows) {
    FVM_TRY(holds_scores(accumulator));
    FVM_TRY(writes(accumulator, rows));
    return writes_once();
  }

  /// Checks that outputs of single trees or rounds may be written here.
  Result<void> stores_leaves() const {
    if (program_.round_begins().empty()) return wrong("the program has no rounds");
    return writes_once();
  }

  /// Checks that the output of some rows may be written here, without an accumulator.
  Result<void> writes_rows(std::uint32_t rows) {
    FVM_TRY(writes_once());
    return reads(rows, Axis::Rows);
  }

  /// Checks that rows may be encoded here. Parallel iterations over trees would write each other's codes.
  Result<void> encodes(std::uint32_t rows) {
    if (program_.columns().empty()) return wrong("the program has no encoder");
    if (innermost_tree_loop() != kNoLoop) return wrong("rows are encoded inside a parallel loop over trees");
    return reads(rows, Axis::Rows);
  }
};

}  // namespace

Result<CodeMap> verify_code(const Program& program) { return CodeVerifier(program).run(); }

}  // namespace forestvm::bytecode
