// The host machine's instructions that turn the scores of rows into values and labels, by any transform, in float32 and
// float64.
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

}  // namespace forestvm::host
