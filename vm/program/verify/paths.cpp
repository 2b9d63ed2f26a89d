// The verifier's rules for the ways that calls take through the code. A call asks for an output and has a
// number of rows, and is made on a CPU target; these choose its blocks. Each way is followed once, with what
// memory has been written and how many steps have been taken so far.
//
// Memory is written before it is read, in the same call and for the same rows, so that answers never depend
// on what a buffer held before; and every row of the output that is asked for is written. A loop's body is
// followed once: what it writes for all elements of an iteration is written for all that the loop goes
// through.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include <boost/container/static_vector.hpp>
#include <forestvm/core/guards.hpp>
#include <forestvm/core/ranges.hpp>
#include <forestvm/core/sums.hpp>
#include <forestvm/internal/formatted.hpp>
#include <forestvm/internal/names.hpp>
#include <forestvm/internal/program_tools.hpp>

#include "vm/program/verify/coverage.hpp"
#include "vm/program/verify/outputs.hpp"
#include "vm/program/verify/steps.hpp"
#include "vm/program/verify/verify.hpp"

namespace forestvm::bytecode {
namespace {

/// The steps that a row may take in any program, and the steps that it may take in addition for each byte of the
/// program. Compiled programs take fewer by orders of magnitude, unless trees of very different depths are walked
/// in lockstep.
constexpr std::uint64_t kFreeSteps = std::uint64_t{1} << 22, kStepsPerByte = 64;

/// The most instructions that are followed on all ways together.
constexpr std::uint64_t kMaxFollowed = std::uint64_t{1} << 21;

/// The steps of a cache instruction: the most cache lines that it prefetches.
constexpr std::uint64_t kCacheSteps = 512;

/// Returns whether some blocks are for some CPU targets only.
bool has_targets(std::span<const Inst> code) {
  for (const Inst& inst : code)
    if (inst.op == Op::On) return true;
  return false;
}

/// The targets on which a call may be made, and how messages name them.
struct CallTarget {
  CpuTarget target;
  const char* text;
};
constexpr CallTarget kEveryTarget = {CpuTarget::Baseline, ""};  // of programs without blocks for targets
constexpr CallTarget kCallTargets[] = {{CpuTarget::Baseline, " on baseline"},
                                       {CpuTarget::Avx2, " on avx2"},
                                       {CpuTarget::Avx512, " on avx512"},
                                       {CpuTarget::Avx512Fp16, " on avx512fp16"}};
static_assert(std::size(kCallTargets) == std::size(kCpuTargets));

/// The properties that all calls on a way have.
struct Way {
  OutputKind output;
  std::uint32_t plan_rows;  ///< Row count by which plans are chosen.
  CallTarget on;

  /// Choose the blocks that the calls take: see guarded_block.
  bool wants(OutputKind other) const { return output == other; }
  bool runs_on(TargetSet targets) const { return contains(targets, on.target); }
};

/// The memory that has been written, for the elements of the innermost iterations.
struct Memory {
  std::array<Intervals, kAccumulators> sums;  ///< Rows of accumulators of sums.
  /// Pairs of trees and rows of accumulators of per-tree values.
  std::array<Rectangles, kAccumulators> leaves;
  Intervals output;        ///< Rows of scores, values or classes.
  Rectangles leaf_output;  ///< Pairs of trees and rows whose leaf numbers were written.
  Intervals codes;         ///< Rows whose codes were written.
};

class WayFollower {
 public:
  WayFollower(const Program& program, const CodeMap& map, std::span<const GroupCosts> costs,
              std::uint64_t& followed)
      : program_(program),
        meta_(program.meta()),
        code_(program.code()),
        accumulators_(program.accumulators()),
        map_(map),
        costs_(costs),
        followed_(followed) {
    private_to_.fill(UINT32_MAX);
  }

  /// Follows a way, and returns the steps of a row on it.
  Result<std::uint64_t> run(const Way& way) {
    way_ = way;
    for (pc_ = 0; pc_ < code_.size(); ++pc_) {
      if (++followed_ > kMaxFollowed)
        return refused("code section", "too many instructions for as many plans");
      FVM_TRY(follow(code_[pc_]));
    }
    if (!output_is_written())
      return refused("code section", "the output is not written for every row ({})", text());
    return steps_;
  }

 private:
  struct Block {
    std::uint32_t open;
    std::uint64_t times;            ///< Value of times_ before the block.
    std::optional<Memory> outside;  ///< Memory that was written before the block, if it is a loop's.
  };

  Failure wrong(CText what) const {
    return code_error(program_, pc_, formatted("{} ({})", what.text(), text()));
  }

  /// Returns the way, for messages.
  std::string text() const {
    return formatted("output {}, calls of {}{}{}", name_of(way_.output), way_.plan_rows,
                     way_.plan_rows == 1 ? " row" : " rows", way_.on.text);
  }

  const RangeFacts& range(std::uint32_t index) const { return map_.ranges[index]; }
  const InstFacts& facts() const { return map_.insts[pc_]; }
  Interval rows() const { return {range(facts().rows).from, range(facts().rows).to}; }
  Interval trees() const { return {range(facts().trees).from, range(facts().trees).to}; }

  void take(std::uint64_t steps) { steps_ = add_capped(steps_, multiply_capped(times_, steps)); }

  const AccumulatorDesc& desc(std::uint32_t accumulator) const { return accumulators_[accumulator]; }
  std::uint64_t width(std::uint32_t accumulator) const { return map_.accumulators[accumulator].width; }

  bool output_is_written() const {
    const RangeFacts &rows = range(kCallRows), &trees = range(kAllTrees);
    const Interval all{rows.from, rows.to};
    switch (way_.output) {
      case OutputKind::Raw:
      case OutputKind::Value:
      case OutputKind::Contributions:
      case OutputKind::Trees:
      case OutputKind::Staged:
      case OutputKind::Interactions:
      case OutputKind::ApproxContributions:
      case OutputKind::VirtEnsembles:
      case OutputKind::Uncertainty:
      case OutputKind::Quantile:
        return memory_.output.covers(all);
      case OutputKind::Class:
        return meta_.class_rule == ClassRule::None || memory_.output.covers(all);
      case OutputKind::Leaf:
        return trees.max_size == 0 || memory_.leaf_output.rows_of({trees.from, trees.to}).covers(all);
    }
    return false;
  }

  // NOLINTNEXTLINE(readability-function-size): one case for each opcode
  Result<void> follow(const Inst& inst) {
    take(1);
    switch (inst.op) {
      case Op::Halt:
        return {};
      case Op::For:
      case Op::Par:
      case Op::Map:
        enter_loop();
        return {};
      case Op::When:
      case Op::Unless:
      case Op::Plan:
      case Op::On:
        return enter_block(guarded_block(inst, way_));
      case Op::End:
        leave();
        return {};
      case Op::Slice:
        return {};
      case Op::CacheRows:
      case Op::CacheTrees:
        take(kCacheSteps);
        return {};
      case Op::Init:
        return sets(operands<Op::Init>(inst).acc_out);
      case Op::Zero:
        return zero(operands<Op::Zero>(inst).acc_out);
      case Op::AddBase:
        return reads_sums(operands<Op::AddBase>(inst).acc_out);
      case Op::Privatize:
        return privatize(operands<Op::Privatize>(inst).acc_out);
      case Op::Walk:
        return walk(inst);
      case Op::Leaves:
        if (way_.output != OutputKind::Leaf && !reads_leaf_numbers(way_.output))
          return wrong("it writes the numbers of leaves");
        memory_.leaf_output.add(trees(), rows());
        return walks();
      case Op::ReduceDim: {
        const auto args = operands<Op::ReduceDim>(inst);
        FVM_TRY(reduce(args.acc_in));
        return reads_sums(args.acc_out);
      }
      case Op::ReduceInplace: {
        const auto args = operands<Op::ReduceInplace>(inst);
        FVM_TRY(reduce(args.acc_in));
        return sets(args.acc_out);
      }
      case Op::Round: {
        const auto args = operands<Op::Round>(inst);
        FVM_TRY(reads_sums(args.acc_in));
        return sets(args.acc_out);
      }
      case Op::SumTrees: {
        const auto args = operands<Op::SumTrees>(inst);
        FVM_TRY(takes_leaves(args.acc_in));
        return reads_sums(args.acc_out);
      }
      case Op::StoreTrees:
        if (way_.output != OutputKind::Trees) return wrong("it writes the outputs of trees");
        FVM_TRY(takes_leaves(operands<Op::StoreTrees>(inst).acc_in));
        memory_.output.add(rows());
        return {};
      case Op::StoreStages: {
        const auto args = operands<Op::StoreStages>(inst);
        if (!is_of_trees(way_.output) || way_.output == OutputKind::Trees)
          return wrong("it writes scores of stages, virtual ensembles or uncertainty");
        FVM_TRY(takes_leaves(args.acc_in));
        FVM_TRY(reads_sums(args.acc_out));
        take(multiply_capped(program_.round_begins().size(), meta_.num_outputs));
        // The variance of trees takes two passes over them for each output.
        if (way_.output == OutputKind::Uncertainty)
          take(multiply_capped(2 * std::uint64_t{meta_.num_trees}, meta_.num_outputs));
        memory_.output.add(rows());
        return {};
      }
      case Op::Transform:
        return reads_sums(operands<Op::Transform>(inst).acc_out);
      case Op::Store:
        if (way_.output != OutputKind::Raw && way_.output != OutputKind::Value)
          return wrong("it writes scores or values");
        return writes_output(operands<Op::Store>(inst).acc_in);
      case Op::Label:
        if (way_.output != OutputKind::Class) return wrong("it writes classes");
        return writes_output(operands<Op::Label>(inst).acc_in);
      case Op::Encode:
        encode();
        return {};
      case Op::Explain:
        return explain();
      case Op::Attribute:
        return attribute();
      case Op::Quantiles:
        return quantiles();
    }
    return {};
  }

  /// Enters a block for calls that ask for the output of `args` or, if `asked` is false, for calls that ask for
  /// another.
  /// Enters a block if calls on the way take it, otherwise skips it.
  Result<void> enter_block(const GuardedBlock& block) {
    if (block.is_taken)
      blocks_.push_back({static_cast<std::uint32_t>(pc_), times_, std::nullopt});
    else
      pc_ = block.end;
    return {};
  }

  void enter_loop() {
    const RangeFacts& in = range(facts().in);
    const Interval over{in.from, in.to};
    blocks_.push_back({static_cast<std::uint32_t>(pc_), times_, memory_});
    const std::uint32_t step = range(facts().out).step;
    if (in.axis == Axis::Rows) {
      enter_rows(over);
    } else {
      // Each row comes to an iteration over rows once, but to every iteration over trees.
      times_ = multiply_capped(times_, iterations(in.max_size, step));
      enter_trees(over);
    }
  }

  /// Enters a loop over rows. What was written for all rows that the loop goes through was written for the rows of
  /// each iteration.
  void enter_rows(Interval over) {
    const auto enter = [&](Intervals& written) {
      const bool all = written.covers(over);
      written = {};
      if (all) written.add(kWhole);
    };
    for (Intervals& sums : memory_.sums) enter(sums);
    enter(memory_.output);
    enter(memory_.codes);
    const auto enter_pairs = [&](Rectangles& written) {
      const Intervals trees = written.trees_of(over);
      written = {};
      for (const Interval part : trees) written.add(part, kWhole);
    };
    for (Rectangles& leaves : memory_.leaves) enter_pairs(leaves);
    enter_pairs(memory_.leaf_output);
  }

  void enter_trees(Interval over) {
    const auto enter_pairs = [&](Rectangles& written) {
      const Intervals rows = written.rows_of(over);
      written = {};
      for (const Interval part : rows) written.add(kWhole, part);
    };
    for (Rectangles& leaves : memory_.leaves) enter_pairs(leaves);
    enter_pairs(memory_.leaf_output);
  }

  void leave() {
    Block block = std::move(blocks_.back());
    blocks_.pop_back();
    times_ = block.times;
    if (!block.outside) return;
    const RangeFacts& in = range(map_.insts[block.open].in);
    const RangeFacts& iteration = range(map_.insts[block.open].out);
    const Interval over{in.from, in.to}, whole{iteration.from, iteration.to};
    if (in.axis == Axis::Rows)
      leave_rows(*block.outside, over, whole);
    else
      leave_trees(*block.outside, over, whole, in.nonempty, block.open);
    memory_ = std::move(*block.outside);
  }

  /// Adds what an iteration has written for all its rows to what is written outside, for all iterations.
  void leave_rows(Memory& outside, Interval over, Interval whole) const {
    const auto leave = [&](Intervals& written, const Intervals& inside) {
      if (inside.covers(whole)) written.add(over);
    };
    for (unsigned i = 0; i < kAccumulators; ++i) leave(outside.sums[i], memory_.sums[i]);
    leave(outside.output, memory_.output);
    leave(outside.codes, memory_.codes);
    const auto leave_pairs = [&](Rectangles& written, const Rectangles& inside) {
      for (const Interval trees : inside.trees_of(whole)) written.add(trees, over);
    };
    for (unsigned i = 0; i < kAccumulators; ++i) leave_pairs(outside.leaves[i], memory_.leaves[i]);
    leave_pairs(outside.leaf_output, memory_.leaf_output);
  }

  /// Leaves a loop over trees. Rows that an iteration has written stay written if there is an iteration; an
  /// accumulator that is private to iterations is read only for iterations that ran.
  void leave_trees(Memory& outside, Interval over, Interval whole, bool iterates, std::uint32_t loop) const {
    for (unsigned i = 0; i < kAccumulators; ++i)
      if (iterates || private_to_[i] == loop) outside.sums[i] = memory_.sums[i];
    if (iterates) {
      outside.output = memory_.output;
      outside.codes = memory_.codes;
    }
    const auto leave_pairs = [&](Rectangles& written, const Rectangles& inside) {
      for (const Interval rows : inside.rows_of(whole)) written.add(over, rows);
    };
    for (unsigned i = 0; i < kAccumulators; ++i) leave_pairs(outside.leaves[i], memory_.leaves[i]);
    leave_pairs(outside.leaf_output, memory_.leaf_output);
  }

  Result<void> sets(std::uint32_t accumulator) {
    take(width(accumulator));
    memory_.sums[accumulator].add(rows());
    return {};
  }

  Result<void> zero(std::uint32_t accumulator) {
    if (!is_per_tree(desc(accumulator).kind)) return sets(accumulator);
    take(width(accumulator));
    memory_.leaves[accumulator].add(kWhole, rows());
    return {};
  }

  Result<void> reads_sums(std::uint32_t accumulator) {
    take(width(accumulator));
    if (memory_.sums[accumulator].covers(rows())) return {};
    return wrong(formatted("a{} is read for rows of which it holds nothing", accumulator));
  }

  /// Returns whether something was written for all trees of these rows.
  bool covers_all_trees(const Rectangles& written) const {
    const RangeFacts& all = range(kAllTrees);
    return all.max_size == 0 ||
           (innermost_trees() == kAllTrees && written.rows_of({all.from, all.to}).covers(rows()));
  }

  Result<void> reads_leaves(std::uint32_t accumulator) {
    take(width(accumulator));
    if (covers_all_trees(memory_.leaves[accumulator])) return {};
    return wrong(formatted("a{} is read for rows of which it does not hold every tree's leaf", accumulator));
  }

  /// Reads the leaves of all trees, and what numbers of vectors or functions stand for.
  Result<void> takes_leaves(std::uint32_t accumulator) {
    FVM_TRY(reads_leaves(accumulator));
    if (!program_.leaf_vectors().empty())
      take(multiply_capped(meta_.num_trees, 2 * std::uint64_t{meta_.num_outputs}));
    if (!program_.leaf_functions().empty()) take(function_steps(program_));
    return {};
  }

  /// Returns the innermost iteration over trees around the next instruction, as a range of the map.
  std::uint32_t innermost_trees() const {
    const auto found = std::ranges::find_if(blocks_.rbegin(), blocks_.rend(), [this](const auto& block) {
      return block.outside && range(map_.insts[block.open].out).axis == Axis::Trees;
    });
    return found == blocks_.rend() ? kAllTrees : map_.insts[found->open].out;
  }

  /// Begins private copies. They are zero, unless the accumulator's memory is another's: then a reduction sets
  /// them.
  Result<void> privatize(std::uint32_t accumulator) {
    private_to_[accumulator] = blocks_.back().open;
    memory_.sums[accumulator] = {};
    if (desc(accumulator).stored_in == accumulator) return sets(accumulator);
    return {};
  }

  Result<void> reduce(std::uint32_t from) {
    take(multiply_capped(desc(from).iterations, width(from)));
    return reads_sums(from);
  }

  Result<void> writes_output(std::uint32_t accumulator) {
    FVM_TRY(reads_sums(accumulator));
    memory_.output.add(rows());
    return {};
  }

  void encode() {
    std::uint64_t steps = program_.columns().size();
    for (const EncodedFeature& feature : program_.encoded_features())
      steps += static_cast<std::uint64_t>(std::bit_width(feature.threshold_count));
    take(steps);
    memory_.codes.add(rows());
  }

  Result<void> explain() {
    if (!can_explain(program_, way_.output)) return wrong("it writes contributions or interactions");
    if (!program_.columns().empty() && !memory_.codes.covers(rows()))
      return wrong("paths test rank codes, and these rows are not encoded here");
    take(explain_steps(program_, way_.output));
    memory_.output.add(rows());
    return {};
  }

  Result<void> attribute() {
    if (way_.output != OutputKind::ApproxContributions) return wrong("it writes approximate contributions");
    return reads_numbers(attribute_steps(program_));
  }

  Result<void> quantiles() {
    if (way_.output != OutputKind::Quantile) return wrong("it writes quantiles");
    return reads_numbers(quantile_steps(program_));
  }

  /// Follows an instruction that computes the output from the numbers of all trees' leaves.
  Result<void> reads_numbers(std::uint64_t steps) {
    if (!covers_all_trees(memory_.leaf_output))
      return wrong("it reads the number of every tree's leaf, and some are not written here");
    take(steps);
    memory_.output.add(rows());
    return {};
  }

  Result<void> walk(const Inst& inst) {
    const std::uint32_t accumulator = operands<Op::Walk>(inst).acc_out;
    FVM_TRY(walks());
    if (is_per_tree(desc(accumulator).kind)) {
      memory_.leaves[accumulator].add(trees(), rows());
      return {};
    }
    if (memory_.sums[accumulator].covers(rows())) return {};
    return wrong(formatted("it adds to a{}, which holds nothing of these rows", accumulator));
  }

  Result<void> walks() {
    const std::uint32_t walker = facts().first_walker;
    if (facts().select == kNoRange)
      return walks_group(walker, {range(facts().trees).lo, range(facts().trees).hi, 0});
    const RangeFacts& by = range(facts().select);
    const Range all{range(by.source).lo, range(by.source).hi, 0};
    for (std::uint32_t i = 0; i < facts().walker_count; ++i)
      FVM_TRY(walks_group(walker + i, chunk(all, by.step, i)));
    return {};
  }

  /// Counts the walks of all of `trees` once: if there are loops over trees, their iterations divide the
  /// trees among each other.
  Result<void> walks_group(std::uint32_t walker, const Range& trees) {
    if (trees.size() == 0) return {};
    const WalkerDesc& desc = program_.walkers()[walker];
    const GroupDesc& group = program_.groups()[desc.group];
    const GroupCosts& costs = costs_[desc.group];
    // Walks in lockstep go on until the last has come to its leaf.
    const std::uint64_t alone =
        costs.before[trees.end - group.tree_begin] - costs.before[trees.begin - group.tree_begin];
    const std::uint64_t together = multiply_capped(alone, desc.interleaved_trees);
    const std::uint64_t most = multiply_capped(trees.size(), costs.most);
    const std::uint64_t unchecked = std::uint64_t{trees.size()} * desc.steps;
    steps_ = add_capped(steps_, add_capped(std::min(together, most), unchecked));
    if (costs.reads_codes && !memory_.codes.covers(rows()))
      return wrong(formatted("group {} reads rank codes, and these rows are not encoded here", desc.group));
    return {};
  }

  /// An interval of all elements of any iteration.
  static constexpr Interval kWhole{0, UINT32_MAX};

  const Program& program_;
  const ProgramMeta& meta_;
  std::span<const Inst> code_;
  std::span<const AccumulatorDesc> accumulators_;
  const CodeMap& map_;
  std::span<const GroupCosts> costs_;
  std::uint64_t& followed_;
  Way way_{};
  std::size_t pc_ = 0;
  Memory memory_;
  boost::container::static_vector<Block, kMaxBlockDepth> blocks_;
  /// Pc of the loop to whose iterations each accumulator is private.
  std::array<std::uint32_t, kAccumulators> private_to_;
  std::uint64_t times_ = 1;  ///< Times that the instruction runs for a row.
  std::uint64_t steps_ = 0;
};

/// Returns a number of rows for each choice of plans.
Result<std::vector<std::uint32_t>> row_counts(const Program& program) {
  std::vector<std::uint32_t> counts{1};
  std::size_t plans = 0;
  for (const Inst& inst : program.code()) {
    if (inst.op != Op::Plan) continue;
    if (++plans > kMaxPlanBlocks)
      return refused("code section", "more than {} blocks of plans", kMaxPlanBlocks);
    const auto [least, most, end] = operands<Op::Plan>(inst);
    counts.push_back(std::max(1u, least));
    if (most != UINT32_MAX) counts.push_back(most + 1);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace

Result<std::uint64_t> verify_paths(const Program& program, const CodeMap& map) {
  std::vector<GroupCosts> costs;
  for (const GroupDesc& group : program.groups()) costs.push_back(costs_of(program, group));
  FVM_ASSIGN(const std::vector<std::uint32_t> counts, row_counts(program));
  const bool by_target = has_targets(program.code());
  const std::span<const CallTarget> targets =
      by_target ? std::span<const CallTarget>(kCallTargets) : std::span(&kEveryTarget, 1);
  std::uint64_t most = 0, followed = 0;
  for (const OutputKind output : kOutputKinds) {
    if (!has_output(program, output)) continue;
    for (const std::uint32_t rows : counts)
      for (const CallTarget& on : targets) {
        FVM_ASSIGN(const std::uint64_t steps,
                   WayFollower(program, map, costs, followed).run({output, rows, on}));
        most = std::max(most, steps);
      }
  }
  most = add_capped(most, derive_steps(program));
  const std::uint64_t allowed = kFreeSteps + kStepsPerByte * program.image().size();
  if (most > allowed)
    return refused("code section",
                   "a row takes up to {} steps, more than the {} that a program of {} bytes may take", most,
                   allowed, program.image().size());
  return most;
}

}  // namespace forestvm::bytecode

std::uint64_t forestvm::steps_per_row(const Program& program) {
  const auto steps = bytecode::verify_paths(program, code_map(program));
  FVM_CHECK(steps.ok());
  return *steps;
}
