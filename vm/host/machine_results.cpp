// The host machine's instructions that turn the scores of rows into values and labels, by any transform, in float32 and
// float64.
#include <optional>
#include <type_traits>

#include <forestvm/core/transform.hpp>

#include "vm/host/machine.hpp"

namespace forestvm::host {

namespace {

/// Fewer scores take less time one at a time than in a vector.
constexpr std::size_t kScoresForVectors = 4;

/// Returns the function of each score that takes most of the time of a transform; empty for other transforms.
std::optional<ScoreFunction> function_of(Transform transform, bool wide) {
  if (transform == Transform::Sigmoid && !wide) return ScoreFunction::CutSigmoid;
  if (transform == Transform::Sigmoid || transform == Transform::PlainSigmoid)
    return ScoreFunction::PlainSigmoid;
  if (transform == Transform::Exp || transform == Transform::Softmax) return ScoreFunction::Exp;
  const bool table = transform == Transform::TableExp || transform == Transform::TableSoftmax;
  if (table && wide) return ScoreFunction::TableExp;
  return std::nullopt;
}

/// Returns the numbers that a function looks up, which are computed when they are asked for the first time.
const RootPowers* root_powers(ScoreFunction function) {
  if (function != ScoreFunction::TableExp) return nullptr;
  static const RootPowers powers;
  return &powers;
}

/// Transforms rows in the target's vectors. Returns false, and does nothing, if they would not take less time, or if
/// scores are divided first, as only few models have it.
template <class Score>
bool transform_in_vectors(const Target& target, Transform transform, Score* scores, std::size_t rows,
                          std::uint32_t outputs, const TransformParameters& parameters) {
  constexpr bool kWide = std::is_same_v<Score, double>;
  const bool softmax = transform == Transform::Softmax || transform == Transform::TableSoftmax;
  const std::size_t count = rows * outputs;
  const std::optional<ScoreFunction> function = function_of(transform, kWide);
  if (!function || count < kScoresForVectors) return false;
  if (parameters.divisor != 1 || (transform == Transform::Softmax && parameters.slope != 1)) return false;
  const ScoresFunction transform_scores = target.scores_function();
  if (transform_scores == nullptr) return false;
  for (std::size_t i = 0; softmax && i < count; i += outputs) subtract_largest(scores + i, outputs);
  transform_scores({*function, kWide, scores, count, parameters.slope, root_powers(*function)});
  for (std::size_t i = 0; softmax && i < count; i += outputs) divide_by_sum(scores + i, outputs);
  return true;
}

}  // namespace

void Machine::transform(const Inst& inst) {
  const auto args = operands<Op::Transform>(inst);
  const Range& rows = ranges[args.rows];
  const auto outputs = static_cast<std::uint32_t>(outputs_);
  with_scores(args.acc_out, [&]<class Score>() {
    Score* const scores = accumulator_row<Score>(args.acc_out, rows.begin);
    if (transform_in_vectors(*loaded_->target, args.transform_kind, scores, rows.size(), outputs,
                             pass_->parameters))
      return;
    for (std::uint32_t row = rows.begin; row < rows.end; ++row)
      transform_row(args.transform_kind, accumulator_row<Score>(args.acc_out, row), outputs,
                    pass_->parameters);
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
