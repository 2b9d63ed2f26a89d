// The host machine's instructions that turn the scores of rows into values and labels, by any transform, in float32 and
// float64, and the one that computes contributions to scores.
#include <algorithm>

#include <forestvm/core/transform.hpp>

#include "vm/host/machine.hpp"

namespace forestvm::host {

void Machine::transform(const Inst& inst) {
  const auto args = operands<Op::Transform>(inst);
  const Range& rows = ranges[args.rows];
  with_scores(args.acc_out, [&]<class Score>() {
    for (std::uint32_t row = rows.begin; row < rows.end; ++row)
      transform_row(args.transform_kind, accumulator_row<Score>(args.acc_out, row),
                    static_cast<std::uint32_t>(outputs_), pass_->parameters);
  });
}

void Machine::label(const Inst& inst) {
  const auto args = operands<Op::Label>(inst);
  if (pass_->labels == nullptr) return;
  const Range& rows = ranges[args.rows];
  const auto outputs = static_cast<std::uint32_t>(outputs_);
  const std::size_t width = label_width(args.rule, outputs, loaded_->parameters.group_ends);
  with_scores(args.acc_in, [&]<class Score>() {
    for (std::uint32_t row = rows.begin; row < rows.end; ++row)
      label_row(args.rule, accumulator_row<Score>(args.acc_in, row), outputs, pass_->labels + row * width,
                pass_->parameters);
  });
}

namespace {

/// Writes the contributions to one output of up to 64 rows. `to` is where the first row's contributions begin; the
/// next row's begin `stride` numbers further on.
template <class Value>
void write_contributions(const LoadedPaths& paths, const PathOutput& output, const double* totals,
                         unsigned rows, std::uint32_t features, std::size_t stride, Value* to) {
  constexpr unsigned kTotalsAtOnce = 8;  // few enough to stay in the first-level cache
  for (unsigned row = 0; row < rows; ++row) {
    if (output.features != features) std::fill_n(to + row * stride, features, Value{0});
    to[row * stride + features] = static_cast<Value>(output.expected);
  }
  const std::uint32_t* const numbers = paths.features.data() + output.first_feature;
  for (std::uint32_t begin = 0; begin < output.features; begin += kTotalsAtOnce) {
    const std::uint32_t end = std::min(output.features, begin + kTotalsAtOnce);
    for (unsigned row = 0; row < rows; ++row)
      for (std::uint32_t i = begin; i < end; ++i)
        to[row * stride + numbers[i]] = static_cast<Value>(totals[std::size_t{i} * kCodeRows + row]);
  }
}

}  // namespace

void Machine::explain(const Inst& inst) {
  const Range rows = ranges[operands<Op::Explain>(inst).rows];
  const LoadedPaths& paths = loaded_->paths;
  const std::uint32_t features = loaded_->meta.num_features;
  const std::size_t width = std::size_t{features} + 1, stride = outputs_ * width;
  const std::size_t columns = loaded_->program.columns().size();
  const ScratchSlots::Slot slot(*pass_->slots);
  const auto* const totals = reinterpret_cast<const double*>(slot.memory() + ExplainScratch(paths).totals);
  for (std::uint32_t row = rows.begin; row < rows.end;) {
    const std::uint32_t count = std::min(kCodeRows - row % kCodeRows, rows.end - row);
    for (std::size_t k = 0; k < outputs_; ++k) {
      const PathOutput& output = paths.outputs[k];
      loaded_->target->explain(
          {&paths, &output, pass_->codes + code_offset(row, columns), count, slot.memory()});
      const std::size_t at = row * stride + k * width;
      if (pass_->wide_values != nullptr)
        write_contributions(paths, output, totals, count, features, stride, pass_->wide_values + at);
      else
        write_contributions(paths, output, totals, count, features, stride, pass_->values + at);
    }
    row += count;
  }
}

}  // namespace forestvm::host
