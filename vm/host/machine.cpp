// The host machine's instructions.
#include "vm/host/machine.hpp"

#include <algorithm>

#include "vm/host/targets/float_environment.hpp"

namespace forestvm::host {

using enum OperandKind;

Machine::Machine(const LoadedProgram& loaded, const Pass& pass)
    : loaded_(&loaded), pass_(&pass), outputs_(loaded.meta.num_outputs) {
  ranges[0] = {0, pass.row_count, 0};
  ranges[1] = {0, loaded.meta.num_trees, 0};
}

void Machine::parallel(const Inst& par, std::uint32_t body) {
  const Range over = ranges[operand<Op::Par, RangeIn>(par)];
  const std::uint32_t out = operand<Op::Par, RangeOut>(par), step = operand<Op::Par, Step>(par);
  const std::uint32_t count = iterations(over.size(), step);
  if (loaded_->executor == nullptr || count <= 1) {  // nothing runs beside it: this machine can go on itself
    for (std::uint32_t i = 0; i < count; ++i) {
      ranges[out] = chunk(over, step, i);
      interpret(loaded_->code, body, *this);
    }
    return;
  }
  auto iteration = [&](std::uint32_t i) {
    const FloatEnvironment environment;
    Machine machine = *this;
    machine.ranges[out] = chunk(over, step, i);
    interpret(loaded_->code, body, machine);
  };
  loaded_->executor->run(count, iteration);
}

void Machine::init(const Inst& inst) {
  const std::uint32_t accumulator = operand<Op::Init, AccOut>(inst);
  const Range& rows = ranges[operand<Op::Init, Rows>(inst)];
  for (std::uint32_t row = rows.begin; row < rows.end; ++row)
    std::copy(loaded_->base.begin(), loaded_->base.end(), accumulator_row(accumulator, row));
}

void Machine::zero(const Inst& inst) {
  const std::uint32_t accumulator = operand<Op::Zero, AccOut>(inst);
  const Range& rows = ranges[operand<Op::Zero, Rows>(inst)];
  std::fill(accumulator_row(accumulator, rows.begin), accumulator_row(accumulator, rows.end), 0.0f);
}

void Machine::add_base(const Inst& inst) {
  const std::uint32_t accumulator = operand<Op::AddBase, AccOut>(inst);
  const Range& rows = ranges[operand<Op::AddBase, Rows>(inst)];
  for (std::uint32_t row = rows.begin; row < rows.end; ++row) {
    float* sums = accumulator_row(accumulator, row);
    for (std::size_t k = 0; k < outputs_; ++k) sums[k] += loaded_->base[k];
  }
}

void Machine::privatize(const Inst& inst) {
  const std::uint32_t accumulator = operand<Op::Privatize, AccOut>(inst);
  const AccumulatorDesc& desc = loaded_->accumulators[accumulator];
  copies_[accumulator] =
      copies_[desc.parent] * desc.iterations + ranges[operand<Op::Privatize, RangeIn>(inst)].iteration;
  const Range& rows = ranges[operand<Op::Privatize, Rows>(inst)];
  std::fill(accumulator_row(accumulator, rows.begin), accumulator_row(accumulator, rows.end), 0.0f);
}

void Machine::walk(const Inst& inst) {
  const LoadedWalker& walker = loaded_->walkers[operand<Op::Walk, Walker>(inst)];
  WalkTask task = walker.task;
  task.tree_range = ranges[operand<Op::Walk, Trees>(inst)];
  task.row_range = ranges[operand<Op::Walk, Rows>(inst)];
  task.rows = pass_->rows;
  task.row_stride = pass_->row_stride;
  task.accumulator = accumulator_row(operand<Op::Walk, AccOut>(inst), 0);
  task.outputs = outputs_;
  walker.function(task);
}

void Machine::reduce_dim(const Inst& inst) {
  const std::uint32_t to = operand<Op::ReduceDim, AccOut>(inst), from = operand<Op::ReduceDim, AccIn>(inst);
  const Range& rows = ranges[operand<Op::ReduceDim, Rows>(inst)];
  const Inst& loop = loaded_->code[operand<Op::ReduceDim, Loop>(inst)];
  const std::uint32_t count =
      iterations(ranges[operand<Op::Par, RangeIn>(loop)].size(), operand<Op::Par, Step>(loop));
  const std::uint32_t first = copies_[to] * loaded_->accumulators[from].iterations;
  float* sums = accumulator_row(to, rows.begin);
  const std::size_t size = rows.size() * outputs_;
  for (std::uint32_t i = 0; i < count; ++i) {
    const float* part = accumulator_row(from, first + i, rows.begin);
    for (std::size_t k = 0; k < size; ++k) sums[k] += part[k];
  }
}

void Machine::transform(const Inst& inst) {
  const std::uint32_t accumulator = operand<Op::Transform, AccOut>(inst);
  const auto kind = static_cast<Transform>(operand<Op::Transform, TransformKind>(inst));
  const Range& rows = ranges[operand<Op::Transform, Rows>(inst)];
  for (std::uint32_t row = rows.begin; row < rows.end; ++row)
    transform_row(kind, accumulator_row(accumulator, row), static_cast<std::uint32_t>(outputs_));
}

void Machine::store(const Inst& inst) {
  if (pass_->in_place || pass_->values == nullptr) return;
  const std::uint32_t accumulator = operand<Op::Store, AccIn>(inst);
  const Range& rows = ranges[operand<Op::Store, Rows>(inst)];
  const ProgramMeta& meta = loaded_->meta;
  const std::size_t width =
      pass_->output == OutputKind::Raw ? meta.num_outputs : value_width(meta.transform, meta.num_outputs);
  for (std::uint32_t row = rows.begin; row < rows.end; ++row)
    std::copy_n(accumulator_row(accumulator, row), width, pass_->values + row * width);
}

void Machine::label(const Inst& inst) {
  if (pass_->labels == nullptr) return;
  const std::uint32_t accumulator = operand<Op::Label, AccIn>(inst);
  const auto rule = static_cast<ClassRule>(operand<Op::Label, Rule>(inst));
  const Range& rows = ranges[operand<Op::Label, Rows>(inst)];
  const auto outputs = static_cast<std::uint32_t>(outputs_);
  const std::size_t width = label_width(rule, outputs);
  for (std::uint32_t row = rows.begin; row < rows.end; ++row)
    label_row(rule, accumulator_row(accumulator, row), outputs, pass_->labels + row * width);
}

}  // namespace forestvm::host
