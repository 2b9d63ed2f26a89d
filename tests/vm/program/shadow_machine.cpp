#include "vm/program/shadow_machine.hpp"

#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <forestvm/core/interpret.hpp>
#include <forestvm/core/layouts.hpp>
#include <forestvm/core/sums.hpp>

#include "vm/program/verify/verify.hpp"

namespace forestvm::test {
namespace {

struct Harm : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr std::uint32_t kOutputBuffer = kAccumulators;
constexpr std::uint32_t kCodes = kAccumulators + 1;
/// Numbers of leaves, for approximate contributions.
constexpr std::uint32_t kLeafNumbers = kAccumulators + 2;
constexpr std::uint64_t kMaxSteps = 1'000'000;

/// A piece of memory: accumulator, copy, row and, for per-tree values and leaf numbers, the tree; otherwise 0.
using Cell = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
enum class Access { Read, Added, Written };  ///< accesses, of which Added is an atomic addition
using Touched = std::map<Cell, Access>;      ///< strongest access to each cell

struct Run {
  const Program& program;
  std::uint32_t rows;
  OutputKind output;
  CpuTarget target;
  Result<CodeMap> map = bytecode::verify_code(program);  ///< an error if the test has planted one
  std::uint64_t steps = 0;
  /// Cells that any instruction has written so far. Iterations run one after the other here.
  std::set<Cell> written = {};
};

class ShadowMachine {
 public:
  ShadowMachine(Run& run, Touched& touched) : run_(&run), touched_(&touched) {
    plan_rows = run.rows;
    ranges[kRowsRegister] = {0, run.rows, 0};
    ranges[kTreesRegister] = {0, run.program.meta().num_trees, 0};
  }

  Range ranges[kRangeRegisters];
  std::uint32_t plan_rows;

  bool wants(OutputKind output) {
    step();
    return run_->output == output;
  }

  bool runs_on(TargetSet targets) {
    step();
    return contains(targets, run_->target);
  }

  void parallel(const Inst& inst, std::uint32_t body) {
    const LoopOperands loop = loop_operands(inst);
    const Range over = ranges[loop.in];
    Touched all;
    for (std::uint32_t i = 0; i < iterations(over.size(), loop.step); ++i) {
      step();
      Touched mine;
      ShadowMachine machine = *this;
      machine.touched_ = &mine;
      machine.ranges[loop.out] = chunk(over, loop.step, i);
      interpret(run_->program.code().data(), body, machine);
      for (const auto& [cell, access] : mine) {
        const auto [at, fresh] = all.emplace(cell, access);
        const bool both_add = access == Access::Added && at->second == Access::Added;
        const bool both_read = access == Access::Read && at->second == Access::Read;
        if (!fresh && !both_add && !both_read) throw Harm("two iterations touch a" + text(cell));
      }
    }
    for (const auto& [cell, access] : all) touch(cell, access);
  }

  void cache_rows(const Inst& inst) { open_loop(operands<Op::CacheRows>(inst).loop); }
  void cache_trees(const Inst& inst) {
    const auto args = operands<Op::CacheTrees>(inst);
    open_loop(args.loop);
    if (args.group >= run_->program.groups().size()) throw Harm("no group");
  }

  void init(const Inst& inst) {
    const auto [accumulator, rows] = operands<Op::Init>(inst);
    write(accumulator, rows);
  }
  void zero(const Inst& inst) {
    const auto [accumulator, rows] = operands<Op::Zero>(inst);
    write(accumulator, rows);
  }
  void add_base(const Inst& inst) {
    const auto args = operands<Op::AddBase>(inst);
    update(args.acc_out, args.rows);
  }
  void transform(const Inst& inst) {
    const auto args = operands<Op::Transform>(inst);
    update(args.acc_out, args.rows);
  }
  void store(const Inst& inst) {
    const auto [accumulator, rows] = operands<Op::Store>(inst);
    output(accumulator, rows);
  }
  void label(const Inst& inst) {
    const auto [accumulator, rows, rule] = operands<Op::Label>(inst);
    output(accumulator, rows);
  }

  void encode(const Inst& inst) {
    const auto args = operands<Op::Encode>(inst);
    check_sizes(inst);
    if (run_->program.columns().empty()) throw Harm("no encoder");
    touch_rows(kCodes, 0, args.rows, Access::Written);
  }

  void explain(const Inst& inst) {
    const auto args = operands<Op::Explain>(inst);
    check_sizes(inst);
    if (run_->program.meta().contributions == 0) throw Harm("no paths");
    if (!run_->program.columns().empty()) touch_rows(kCodes, 0, args.rows, Access::Read);
    touch_rows(kOutputBuffer, 0, args.rows, Access::Written);
  }

  void attribute(const Inst& inst) {
    const auto args = operands<Op::Attribute>(inst);
    check_sizes(inst);
    if (run_->program.attribution_base().empty()) throw Harm("no attributions");
    touch_rows(kLeafNumbers, 0, args.rows, Access::Read);
    touch_rows(kOutputBuffer, 0, args.rows, Access::Written);
  }

  void quantiles(const Inst& inst) {
    const auto args = operands<Op::Quantiles>(inst);
    check_sizes(inst);
    if (run_->program.targets().empty()) throw Harm("no targets");
    touch_rows(kLeafNumbers, 0, args.rows, Access::Read);
    touch_rows(kOutputBuffer, 0, args.rows, Access::Written);
  }

  void privatize(const Inst& inst) {
    const auto args = operands<Op::Privatize>(inst);
    const AccumulatorDesc& desc = accumulators()[args.acc_out];
    copies_[args.acc_out] = copies_[desc.parent] * desc.iterations + ranges[args.range_in].iteration;
    if (desc.stored_in == args.acc_out) write(args.acc_out, args.rows);
  }

  void walk(const Inst& inst) {
    const auto args = operands<Op::Walk>(inst);
    check_sizes(inst);
    const std::uint32_t accumulator = args.acc_out, rows = args.rows;
    const WalkerDesc& walker = chosen(args.walker, args.select, args.trees);
    read_codes(walker, rows);
    if (is_per_tree(accumulators()[accumulator].kind))
      touch_trees(accumulator, walker, args.trees, rows);
    else if (walker.atomic != 0)
      touch_rows(accumulator, copies_[accumulator], rows, Access::Added);
    else
      update(accumulator, rows);
  }

  void leaves(const Inst& inst) {
    const auto args = operands<Op::Leaves>(inst);
    check_sizes(inst);
    const std::uint32_t trees = args.trees;
    const WalkerDesc& walker = chosen(args.walker, args.select, trees);
    read_codes(walker, args.rows);
    const bool keeps = reads_leaf_numbers(run_->output);
    touch_trees(keeps ? kLeafNumbers : kOutputBuffer, walker, trees, args.rows);
  }

  void reduce_dim(const Inst& inst) { reduce(operands<Op::ReduceDim>(inst), false); }
  void reduce_inplace(const Inst& inst) { reduce(operands<Op::ReduceInplace>(inst), true); }

  void round(const Inst& inst) {
    const auto args = operands<Op::Round>(inst);
    const std::uint32_t rows = args.rows, from = args.acc_in;
    touch_rows(from, copies_[from], rows, Access::Read);
    write(args.acc_out, rows);
  }

  void sum_trees(const Inst& inst) {
    const auto args = operands<Op::SumTrees>(inst);
    const std::uint32_t rows = args.rows, from = args.acc_in;
    touch_rows(from, copies_[from], rows, Access::Read);
    update(args.acc_out, rows);
  }

  void store_trees(const Inst& inst) {
    const auto args = operands<Op::StoreTrees>(inst);
    if (run_->program.round_begins().empty()) throw Harm("no rounds");
    output(args.acc_in, args.rows);
  }
  void store_stages(const Inst& inst) {
    const auto args = operands<Op::StoreStages>(inst);
    if (run_->program.round_begins().empty()) throw Harm("no rounds");
    const std::uint32_t rows = args.rows, from = args.acc_in;
    touch_rows(from, copies_[from], rows, Access::Read);
    update(args.acc_out, rows);
    touch_rows(kOutputBuffer, 0, rows, Access::Written);
  }

 private:
  void step() {
    if (++run_->steps > kMaxSteps) throw Harm("work without end");
  }

  std::span<const AccumulatorDesc> accumulators() const { return run_->program.accumulators(); }

  static std::string text(const Cell& cell) {
    const auto& [accumulator, copy, row, tree] = cell;
    return std::to_string(accumulator) + ", copy " + std::to_string(copy) + ", row " + std::to_string(row) +
           ", tree " + std::to_string(tree);
  }

  void open_loop(std::uint32_t pc) {
    step();
    if (!is_loop(run_->program.code()[pc].op)) throw Harm("a cache of no loop");
  }

  /// Returns the walker that an iteration gets; its trees must lie in its group.
  const WalkerDesc& chosen(std::uint32_t walker, std::uint32_t select, std::uint32_t trees) const {
    const std::uint32_t index = walker + ranges[select].iteration;
    if (index >= run_->program.walkers().size()) throw Harm("a walker that does not exist");
    const WalkerDesc& desc = run_->program.walkers()[index];
    const GroupDesc& group = run_->program.groups()[desc.group];
    const Range& range = ranges[trees];
    if (range.begin > range.end) throw Harm("a range of trees is reversed");
    if (range.size() > 0 && (range.begin < group.tree_begin || range.end > group.tree_end))
      throw Harm("trees outside their group are walked");
    return desc;
  }

  void read_codes(const WalkerDesc& walker, std::uint32_t rows) {
    if (takes_codes(run_->program.groups()[walker.group].layout)) touch_rows(kCodes, 0, rows, Access::Read);
  }

  /// Records an access to a cell. Only writes may access a cell that was not set before.
  void use(const Cell& cell, Access access) {
    if (access == Access::Written)
      run_->written.insert(cell);
    else if (!run_->written.contains(cell))
      throw Harm("a cell that nothing has set is read: a" + text(cell));
    touch(cell, access);
  }

  void touch(const Cell& cell, Access access) {
    const auto [at, fresh] = touched_->emplace(cell, access);
    if (fresh || at->second == access) return;
    at->second = Access::Written;  // no other access may happen beside it
  }

  /// Checks that the ranges which an instruction takes are no larger than the map of the code says.
  void check_sizes(const Inst& inst) const {
    if (!run_->map.ok()) return;
    const InstFacts& facts = run_->map->insts[static_cast<std::size_t>(&inst - run_->program.code().data())];
    for_each_operand(inst, [&](unsigned, OperandKind kind, std::uint32_t number) {
      if (kind != OperandKind::Rows && kind != OperandKind::Trees) return;
      const std::uint32_t range = kind == OperandKind::Rows ? facts.rows : facts.trees;
      if (ranges[number].size() > max_size(*run_->map, range, run_->rows))
        throw Harm("a range is larger than the map of the code says");
    });
  }

  void check_rows(const Range& rows) {
    step();
    if (rows.begin > rows.end) throw Harm("a range of rows is reversed");
    if (rows.end > run_->rows) throw Harm("rows beyond the last one");
  }

  /// Returns where a copy is stored, which may be in another accumulator's memory.
  std::pair<std::uint32_t, std::uint32_t> location(std::uint32_t accumulator, std::uint32_t copy) const {
    while (accumulators()[accumulator].stored_in != accumulator) {
      accumulator = accumulators()[accumulator].stored_in;
      copy *= accumulators()[accumulator].iterations;
    }
    return {accumulator, copy};
  }

  void touch_rows(std::uint32_t accumulator, std::uint32_t copy, std::uint32_t rows, Access access) {
    const Range& range = ranges[rows];
    check_rows(range);
    bool per_tree = false;
    if (accumulator < kOutputBuffer) {
      std::tie(accumulator, copy) = location(accumulator, copy);
      if (copy >= accumulators()[accumulator].copies)
        throw Harm("copy " + std::to_string(copy) + " of a" + std::to_string(accumulator) +
                   " does not exist");
      per_tree = is_per_tree(accumulators()[accumulator].kind);
    }
    const bool of_trees = per_tree || accumulator == kLeafNumbers;
    const std::uint32_t trees = of_trees ? run_->program.meta().num_trees : 1;
    for (std::uint32_t row = range.begin; row < range.end; ++row)
      for (std::uint32_t tree = 0; tree < trees; ++tree) use({accumulator, copy, row, tree}, access);
  }

  void touch_trees(std::uint32_t accumulator, const WalkerDesc& walker, std::uint32_t trees,
                   std::uint32_t rows) {
    const GroupDesc& group = run_->program.groups()[walker.group];
    const Range& range = ranges[rows];
    check_rows(range);
    for (std::uint32_t tree = ranges[trees].begin; tree < ranges[trees].end; ++tree) {
      const std::uint32_t number = run_->program.trees()[group.first_tree + (tree - group.tree_begin)].number;
      if (number >= run_->program.meta().num_trees) throw Harm("a tree that the model does not have");
      for (std::uint32_t row = range.begin; row < range.end; ++row)
        use({accumulator, 0, row, number}, Access::Written);
    }
  }

  void reduce(const OperandsOf<Op::ReduceDim>& args, bool in_place) {
    const std::uint32_t to = args.acc_out, from = args.acc_in;
    const LoopOperands loop = loop_operands(run_->program.code()[args.loop]);
    const std::uint32_t count = iterations(ranges[loop.in].size(), loop.step);
    const std::uint32_t first = copies_[to] * accumulators()[from].iterations;
    const std::uint32_t rows = args.rows;
    for (std::uint32_t i = 0; i < count; ++i) touch_rows(from, first + i, rows, Access::Read);
    if (in_place)
      touch_rows(from, first, rows, Access::Written);
    else
      update(to, rows);
  }

  /// Reads an accumulator and writes it again.
  void update(std::uint32_t accumulator, std::uint32_t rows) {
    touch_rows(accumulator, copies_[accumulator], rows, Access::Read);
    write(accumulator, rows);
  }

  void write(std::uint32_t accumulator, std::uint32_t rows) {
    touch_rows(accumulator, copies_[accumulator], rows, Access::Written);
  }

  void output(std::uint32_t accumulator, std::uint32_t rows) {
    touch_rows(accumulator, copies_[accumulator], rows, Access::Read);
    touch_rows(kOutputBuffer, 0, rows, Access::Written);
  }

  Run* run_;
  Touched* touched_;
  std::uint32_t copies_[kAccumulators] = {};
};

/// Checks that every row of the output was written, and for leaf numbers every tree.
void check_output(const Run& run) {
  if (run.output == OutputKind::Class && run.program.meta().class_rule == ClassRule::None) return;
  const std::uint32_t trees = run.output == OutputKind::Leaf ? run.program.meta().num_trees : 1;
  for (std::uint32_t row = 0; row < run.rows; ++row)
    for (std::uint32_t tree = 0; tree < trees; ++tree)
      if (!run.written.contains({kOutputBuffer, 0, row, tree}))
        throw Harm("the output of row " + std::to_string(row) + " is not written");
}

}  // namespace

Watched watch(const Program& program, std::uint32_t rows, OutputKind output, CpuTarget target) {
  Run run{program, rows, output, target};
  Touched touched;
  ShadowMachine machine(run, touched);
  try {
    interpret(program.code().data(), 0, machine);
    check_output(run);
  } catch (const Harm& harm) {
    return {harm.what(), run.steps};
  }
  return {{}, run.steps};
}

}  // namespace forestvm::test
