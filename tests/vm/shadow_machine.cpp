#include "shadow_machine.hpp"

#include <map>
#include <stdexcept>
#include <tuple>

#include <forestvm/core/interpret.hpp>

namespace forestvm::test {
namespace {

using enum OperandKind;

struct Harm : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr std::uint32_t kOutputBuffer = kAccumulators;
constexpr std::uint64_t kMostSteps = 1'000'000;

using Cell = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  ///< accumulator, copy, row
using Touched = std::map<Cell, bool>;                                  ///< whether it was written

struct Run {
  const Program& program;
  std::uint32_t rows;
  OutputKind output;
  std::uint64_t steps = 0;
};

class ShadowMachine {
 public:
  ShadowMachine(Run& run, Touched& touched) : run_(&run), touched_(&touched) {
    ranges[0] = {0, run.rows, 0};
    ranges[1] = {0, run.program.meta().num_trees, 0};
  }

  Range ranges[kRangeRegisters];

  bool wants(OutputKind output) {
    step();
    return run_->output == output;
  }

  void parallel(const Inst& par, std::uint32_t body) {
    const Range over = ranges[operand<Op::Par, RangeIn>(par)];
    const std::uint32_t size = operand<Op::Par, Step>(par);
    Touched all;
    for (std::uint32_t i = 0; i < iterations(over.size(), size); ++i) {
      step();
      Touched mine;
      ShadowMachine machine = *this;
      machine.touched_ = &mine;
      machine.ranges[operand<Op::Par, RangeOut>(par)] = chunk(over, size, i);
      interpret(run_->program.code().data(), body, machine);
      for (const auto& [cell, written] : mine) {
        const auto [at, fresh] = all.emplace(cell, written);
        if (!fresh && (written || at->second)) throw Harm("two iterations touch a" + text(cell));
      }
    }
    for (const auto& [cell, written] : all) touch(cell, written);
  }

  void init(const Inst& inst) { write(operand<Op::Init, AccOut>(inst), operand<Op::Init, Rows>(inst)); }
  void zero(const Inst& inst) { write(operand<Op::Zero, AccOut>(inst), operand<Op::Zero, Rows>(inst)); }
  void add_base(const Inst& inst) {
    write(operand<Op::AddBase, AccOut>(inst), operand<Op::AddBase, Rows>(inst));
  }
  void transform(const Inst& inst) {
    write(operand<Op::Transform, AccOut>(inst), operand<Op::Transform, Rows>(inst));
  }
  void store(const Inst& inst) { output(operand<Op::Store, AccIn>(inst), operand<Op::Store, Rows>(inst)); }
  void label(const Inst& inst) { output(operand<Op::Label, AccIn>(inst), operand<Op::Label, Rows>(inst)); }

  void privatize(const Inst& inst) {
    const std::uint32_t accumulator = operand<Op::Privatize, AccOut>(inst);
    const AccumulatorDesc& desc = run_->program.section_Accumulators()[accumulator];
    copies_[accumulator] =
        copies_[desc.parent] * desc.iterations + ranges[operand<Op::Privatize, RangeIn>(inst)].iteration;
    write(accumulator, operand<Op::Privatize, Rows>(inst));
  }

  void walk(const Inst& inst) {
    const Range& trees = ranges[operand<Op::Walk, Trees>(inst)];
    const WalkerDesc& walker = run_->program.section_Walkers()[operand<Op::Walk, Walker>(inst)];
    const GroupDesc& group = run_->program.section_Groups()[walker.group];
    if (trees.begin > trees.end) throw Harm("a range of trees is reversed");
    if (trees.size() > 0 && (trees.begin < group.tree_begin || trees.end > group.tree_end))
      throw Harm("trees outside their group are walked");
    write(operand<Op::Walk, AccOut>(inst), operand<Op::Walk, Rows>(inst));
  }

  void reduce_dim(const Inst& inst) {
    const std::uint32_t to = operand<Op::ReduceDim, AccOut>(inst), from = operand<Op::ReduceDim, AccIn>(inst);
    const Inst& loop = run_->program.code()[operand<Op::ReduceDim, Loop>(inst)];
    const std::uint32_t count =
        iterations(ranges[operand<Op::Par, RangeIn>(loop)].size(), operand<Op::Par, Step>(loop));
    const std::uint32_t first = copies_[to] * run_->program.section_Accumulators()[from].iterations;
    const std::uint32_t rows = operand<Op::ReduceDim, Rows>(inst);
    for (std::uint32_t i = 0; i < count; ++i) touch_rows(from, first + i, rows, false);
    write(to, rows);
  }

 private:
  void step() {
    if (++run_->steps > kMostSteps) throw Harm("work without end");
  }

  static std::string text(const Cell& cell) {
    const auto& [accumulator, copy, row] = cell;
    return std::to_string(accumulator) + ", copy " + std::to_string(copy) + ", row " + std::to_string(row);
  }

  void touch(const Cell& cell, bool written) {
    bool& so_far = (*touched_)[cell];
    so_far = so_far || written;
  }

  void touch_rows(std::uint32_t accumulator, std::uint32_t copy, std::uint32_t rows, bool written) {
    step();
    const Range& range = ranges[rows];
    if (range.begin > range.end) throw Harm("a range of rows is reversed");
    if (range.end > run_->rows) throw Harm("rows beyond the last one");
    const std::uint32_t copies =
        accumulator == kOutputBuffer ? 1 : run_->program.section_Accumulators()[accumulator].copies;
    if (copy >= copies)
      throw Harm("copy " + std::to_string(copy) + " of a" + std::to_string(accumulator) + " does not exist");
    for (std::uint32_t row = range.begin; row < range.end; ++row) touch({accumulator, copy, row}, written);
  }

  void write(std::uint32_t accumulator, std::uint32_t rows) {
    touch_rows(accumulator, copies_[accumulator], rows, true);
  }

  void output(std::uint32_t accumulator, std::uint32_t rows) {
    touch_rows(accumulator, copies_[accumulator], rows, false);
    touch_rows(kOutputBuffer, 0, rows, true);
  }

  Run* run_;
  Touched* touched_;
  std::uint32_t copies_[kAccumulators] = {};
};

}  // namespace

Watched watch(const Program& program, std::uint32_t rows, OutputKind output) {
  Run run{program, rows, output};
  Touched touched;
  ShadowMachine machine(run, touched);
  try {
    interpret(program.code().data(), 0, machine);
  } catch (const Harm& harm) {
    return {harm.what(), run.steps};
  }
  return {{}, run.steps};
}

}  // namespace forestvm::test
