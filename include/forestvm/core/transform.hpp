// Output transforms: the last step of a prediction, one implementation for the host and every device.
// In: raw scores; out: what the trainer's predict gives, and labels. Rows: transforms.def, class_rules.def.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include <forestvm/core/exp.hpp>
#include <forestvm/core/math.hpp>
#include <forestvm/core/platform.hpp>
#include <forestvm/core/table_exp.hpp>

namespace forestvm {

/// The type in which a trainer compares and sums.
enum class ScalarType : std::uint8_t { Float32 = 0, Float64 = 1 };

/// Returns the bytes of a number.
FVM_HOST_DEVICE constexpr std::uint32_t size_of(ScalarType type) {
  return type == ScalarType::Float64 ? sizeof(double) : sizeof(float);
}

/// LightGBM's kZeroThreshold, 1e-35f: it takes numbers whose size is at most this for 0 (Missing::Zero,
/// Model::tiny_is_zero).
inline constexpr double kTiny = 1.0000000180025095e-35;

/// The transforms of raw scores into the results of the trainer's predict; rows in transforms.def.
enum class Transform : std::uint8_t {
#define FVM_TRANSFORM(number, Name, text, meaning) Name = number,
#include <forestvm/core/transforms.def>
};

/// The rules that turn values into labels; rows in class_rules.def.
enum class ClassRule : std::uint8_t {
#define FVM_CLASS_RULE(number, Name, text, meaning) Name = number,
#include <forestvm/core/class_rules.def>
};

/// The rules that make two values of one; rows in pairs.def.
enum class Pair : std::uint8_t {
#define FVM_PAIR(number, Name, text, meaning) Name = number,
#include <forestvm/core/pairs.def>
};

/// Returns the values per row after a transform of `outputs` raw scores. Only models of one output have pairs.
FVM_HOST_DEVICE constexpr std::uint32_t value_width(Transform transform, Pair pair, std::uint32_t outputs) {
  if (pair != Pair::None) return 2;
  return transform == Transform::Argmax || transform == Transform::WeightedMedian ? 1 : outputs;
}

/// Returns whether labels come from raw scores, which no transform has touched.
FVM_HOST_DEVICE constexpr bool takes_raw_scores(ClassRule rule) {
  switch (rule) {
    case ClassRule::RawPositive:
    case ClassRule::RawNotNegative:
    case ClassRule::RawAboveHalf:
    case ClassRule::RawArgmax:
    case ClassRule::RawAboveOffset:
      return true;
    case ClassRule::None:
    case ClassRule::AboveHalf:
    case ClassRule::Positive:
    case ClassRule::Argmax:
    case ClassRule::ArgmaxOfEach:
    case ClassRule::Value:
    case ClassRule::Negative:
    case ClassRule::HalfOrMore:
    case ClassRule::NotPositive:
      return false;
  }
  return false;
}

/// Returns the labels per row; 0 if the model has no classes. For `group_ends` see TransformParameters.
FVM_HOST_DEVICE constexpr std::uint32_t label_width(ClassRule rule, std::uint32_t outputs,
                                                    std::uint64_t group_ends = 0) {
  switch (rule) {
    case ClassRule::None:
      return 0;
    case ClassRule::AboveHalf:
    case ClassRule::Positive:
    case ClassRule::RawPositive:
    case ClassRule::RawNotNegative:
    case ClassRule::Negative:
    case ClassRule::RawAboveHalf:
    case ClassRule::RawAboveOffset:
    case ClassRule::HalfOrMore:
    case ClassRule::NotPositive:
      return outputs;
    case ClassRule::Argmax:
    case ClassRule::Value:
    case ClassRule::RawArgmax:
      return 1;
    case ClassRule::ArgmaxOfEach:
      return static_cast<std::uint32_t>(std::popcount(group_ends));
  }
  return 0;
}

/// Numbers that a transform takes beside the scores.
struct TransformParameters {
  double divisor = 1;  ///< Number by which raw scores are divided first.
  double slope = 1;    ///< Factor of the argument of sigmoids; divisor of the argument of others.
  double offset = 0;   ///< Number that AnomalyDecision subtracts and RawAboveOffset compares with.
  /// Bit i is set if output i is the last of a group of ArgmaxOfEach; 0 for other rules.
  std::uint64_t group_ends = 0;
};

/// The most outputs of a model whose labels ArgmaxOfEach gives: TransformParameters::group_ends has a bit for each.
inline constexpr std::uint32_t kMaxGroupedOutputs = 64;

/// Returns whether a model may have these TransformParameters::group_ends: the last group ends with the outputs.
constexpr bool are_group_ends(ClassRule rule, std::uint32_t outputs, std::uint64_t group_ends) {
  return rule == ClassRule::ArgmaxOfEach ? static_cast<std::uint32_t>(std::bit_width(group_ends)) == outputs
                                         : group_ends == 0;
}

/// Returns log(x) + rest + log(2) * power for a normal x > 0 and a tiny rest.
/// log(m) = f - f * f / 2 + s * (f * f / 2 + series in s * s) with f = m - 1 and s = f / (2 + f).
FVM_HOST_DEVICE inline double scaled_log(double x, double rest, std::int32_t power) {
  std::uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  std::int32_t n = static_cast<std::int32_t>(bits >> 52) - 1023 + power;
  bits = (bits & 0xfffffffffffff) | 0x3ff0000000000000;
  double m;
  __builtin_memcpy(&m, &bits, sizeof m);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++n;
  }
  const double f = m - 1;
  const double s = f / (2 + f);
  double series = 0;
  for (int k = 11; k > 0; --k) series = (series + 2.0 / (2 * k + 1)) * (s * s);
  const double half = 0.5 * f * f;
  return n * kLn2High - ((half - (s * (half + series) + (n * kLn2Low + rest))) - f);
}

/// Returns log(1 + y) for y >= 0, within 1 ulp of the correctly rounded result, the same bits on every device.
FVM_HOST_DEVICE inline double log1p_f64(double y) {
  if (!(y <= std::numeric_limits<double>::max())) return y;
  const double u = 1 + y;
  const double lost = y < 1 ? y - (u - 1) : 1 - (u - y);
  return scaled_log(u, lost / u, 0);
}

template <class Scalar>
FVM_HOST_DEVICE inline Scalar table_exp_of(Scalar x) {
  return static_cast<Scalar>(table_exp(static_cast<double>(x)));
}

/// Returns 1 / (1 + exp(-x)) as XGBoost computes it, in float32: the exponent's argument is cut at 88.7 so that it
/// stays finite. `Number` is float, or a vector of them; `exponential` is the function to take for exp.
template <class Number, class Exponential>
FVM_INLINE Number cut_sigmoid(Number x, Exponential exponential) {
  return 1.0f / (exponential(at_most(-x, 88.7f)) + 1.0f);
}

/// Returns the sigmoid without a limit on the argument, as LightGBM computes it in float64. `Number` is float or
/// double, or a vector of them.
template <class Number, class Exponential>
FVM_INLINE Number plain_sigmoid(Number x, Exponential exponential) {
  return 1 / (1 + exponential(-x));
}

template <class Scalar>
FVM_HOST_DEVICE inline Scalar plain_sigmoid_of(Scalar x) {
  return plain_sigmoid(x, [](Scalar argument) { return exp_of(argument); });
}

FVM_HOST_DEVICE inline float sigmoid_of(float x) {
  return cut_sigmoid(x, [](float argument) { return exp_of(argument); });
}
FVM_HOST_DEVICE inline double sigmoid_of(double x) { return plain_sigmoid_of(x); }

/// Returns the logistic function as ONNX Runtime computes it.
template <class Scalar>
FVM_HOST_DEVICE inline Scalar logistic_of(Scalar x) {
  const Scalar v = 1 / (1 + exp_of(x < 0 ? x : -x));
  return x < 0 ? 1 - v : v;
}

/// Applies softmax to all scores but those that are exactly 0, which stay 0.
template <class Scalar>
FVM_HOST_DEVICE inline void softmax_zero(Scalar* scores, std::uint32_t count) {
  Scalar largest = scores[0];
  for (std::uint32_t i = 1; i < count; ++i)
    if (scores[i] > largest) largest = scores[i];
  double sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    scores[i] = scores[i] == 0 ? Scalar{0} : exp_of(scores[i] - largest);
    sum += static_cast<double>(scores[i]);
  }
  const Scalar total = static_cast<Scalar>(sum);
  for (std::uint32_t i = 0; i < count && total != 0; ++i) scores[i] /= total;
}

/// Applies softmax as Treelite computes it: with the largest score and the exponentials in float32, whatever the type
/// of the scores.
template <class Scalar>
FVM_HOST_DEVICE inline void rounded_softmax(Scalar* scores, std::uint32_t count) {
  float largest = static_cast<float>(scores[0]);
  for (std::uint32_t i = 1; i < count; ++i)
    if (scores[i] > static_cast<Scalar>(largest)) largest = static_cast<float>(scores[i]);
  double sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const float power = static_cast<float>(exp_of(scores[i] - static_cast<Scalar>(largest)));
    sum += static_cast<double>(power);
    scores[i] = static_cast<Scalar>(power);
  }
  const Scalar total = static_cast<Scalar>(static_cast<float>(sum));
  for (std::uint32_t i = 0; i < count; ++i) scores[i] /= total;
}

/// Applies softmax as YDF computes it: nothing is subtracted, so that large scores overflow.
template <class Scalar>
FVM_HOST_DEVICE inline void plain_softmax(Scalar* scores, std::uint32_t count) {
  Scalar sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    scores[i] = exp_of(scores[i]);
    sum += scores[i];
  }
  const Scalar factor = 1 / sum;
  for (std::uint32_t i = 0; i < count; ++i) scores[i] *= factor;
}

/// Returns exp of x, which is cut to the limits that YDF sets for Poisson regression.
template <class Scalar>
FVM_HOST_DEVICE inline Scalar cut_exp(Scalar x) {
  constexpr Scalar kLimit = 19;
  return exp_of(x < -kLimit ? -kLimit : x > kLimit ? kLimit : x);
}

/// Returns exp(slope * x) in float64, rounded once: with slope = log(b) it is b to the power of x, whatever base b an
/// evaluator takes for e.
template <class Scalar>
FVM_HOST_DEVICE inline Scalar power_exp(Scalar x, double slope) {
  return static_cast<Scalar>(exp_f64(slope * static_cast<double>(x)));
}

/// Returns the sigmoid with power_exp.
template <class Scalar>
FVM_HOST_DEVICE inline Scalar power_sigmoid(Scalar x, double slope) {
  return 1 / (1 + power_exp(-x, slope));
}

/// Applies softmax with power_exp; the sum of the powers is rounded after each of them.
template <class Scalar>
FVM_HOST_DEVICE inline void power_softmax(Scalar* scores, std::uint32_t count, double slope) {
  Scalar largest = scores[0];
  for (std::uint32_t i = 1; i < count; ++i)
    if (scores[i] > largest) largest = scores[i];
  Scalar sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    scores[i] = power_exp(scores[i] - largest, slope);
    sum += scores[i];
  }
  for (std::uint32_t i = 0; i < count; ++i) scores[i] /= sum;
}

template <class Scalar>
FVM_HOST_DEVICE inline Scalar signed_square(Scalar x) {
  const Scalar sign = static_cast<Scalar>((x > 0) - (x < 0));
  return sign * x * x;
}

template <class Scalar>
FVM_HOST_DEVICE inline Scalar log1p_exp(Scalar x) {
  return static_cast<Scalar>(log1p_f64(static_cast<double>(exp_of(x))));
}

/// Returns the index of the first largest of `count` scores, each divided by `divisor`.
template <class Scalar>
FVM_HOST_DEVICE inline std::uint32_t argmax(const Scalar* scores, std::uint32_t count, Scalar divisor = 1) {
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < count; ++i)
    if (scores[i] / divisor > scores[best] / divisor) best = i;
  return best;
}

/// Subtracts the largest of some scores from each: the first step of a softmax.
template <class Scalar>
FVM_HOST_DEVICE inline void subtract_largest(Scalar* scores, std::uint32_t count) {
  Scalar largest = scores[0];
  for (std::uint32_t i = 1; i < count; ++i)
    if (scores[i] > largest) largest = scores[i];
  for (std::uint32_t i = 0; i < count; ++i) scores[i] -= largest;
}

/// Divides some numbers by their sum, which is added in float64: the last step of a softmax.
template <class Scalar>
FVM_HOST_DEVICE inline void divide_by_sum(Scalar* numbers, std::uint32_t count) {
  double sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) sum += static_cast<double>(numbers[i]);
  const Scalar total = static_cast<Scalar>(sum);
  for (std::uint32_t i = 0; i < count; ++i) numbers[i] /= total;
}

/// Applies softmax; `exponential` is the function to take for exp.
template <class Scalar, class Exponential>
FVM_HOST_DEVICE inline void softmax(Scalar* scores, std::uint32_t count, Exponential exponential) {
  subtract_largest(scores, count);
  for (std::uint32_t i = 0; i < count; ++i) scores[i] = exponential(scores[i]);
  divide_by_sum(scores, count);
}

/// Returns whether a score comes after another in ascending order, in which NaN is last.
template <class Scalar>
FVM_HOST_DEVICE inline bool comes_after(Scalar score, Scalar other) {
  return other == other && !(score <= other);  // NOLINT(misc-redundant-expression): false for NaN
}

/// Sorts `count` scores in ascending order, and the numbers `beside` them in the order of their scores. Equal
/// scores may come in any order. `beside` may be `scores`.
template <class Scalar>
FVM_HOST_DEVICE inline void sort_scores(Scalar* scores, Scalar* beside, std::uint32_t count) {
  for (std::uint32_t gap = count; gap > 1;) {
    gap = gap < 5 ? 1 : static_cast<std::uint32_t>(std::uint64_t{gap} * 5 / 11);
    for (std::uint32_t i = gap; i < count; ++i) {
      const Scalar score = scores[i], number = beside[i];
      std::uint32_t to = i;
      for (; to >= gap && comes_after(scores[to - gap], score); to -= gap) {
        scores[to] = scores[to - gap];
        beside[to] = beside[to - gap];
      }
      scores[to] = score;
      beside[to] = number;
    }
  }
}

/// Returns the weighted median of scores[0 .. count), whose weights are the next `count` scores; sorts both. The
/// order of equal scores matters only for the rounding of the sum of their weights.
template <class Scalar>
FVM_HOST_DEVICE inline Scalar weighted_median(Scalar* scores, std::uint32_t count) {
  Scalar* const weights = scores + count;
  sort_scores(scores, weights, count);
  for (std::uint32_t i = 1; i < count; ++i) weights[i] += weights[i - 1];
  std::uint32_t chosen = 0;
  while (chosen + 1 < count && !(weights[chosen] >= Scalar{0.5} * weights[count - 1])) ++chosen;
  return scores[chosen];
}

/// Replaces each score but the first by its softplus, as XGBoost computes it, plus the value before it, so that
/// values ascend.
template <class Scalar>
FVM_HOST_DEVICE inline void softplus_steps(Scalar* scores, std::uint32_t count) {
  for (std::uint32_t i = 1; i < count; ++i) {
    const Scalar x = scores[i], rest = log1p_exp(x > 0 ? -x : x);
    scores[i] = scores[i - 1] + ((x > 0 ? x + rest : rest) + static_cast<Scalar>(1e-6));
  }
}

/// Divides each score by `divisor`.
template <class Scalar>
FVM_HOST_DEVICE inline void divide(Scalar* scores, std::uint32_t count, Scalar divisor) {
  if (divisor == 1) return;
  for (std::uint32_t i = 0; i < count; ++i) scores[i] /= divisor;
}

/// Returns x, cut to [0, 1].
template <class Scalar>
FVM_HOST_DEVICE inline Scalar cut_to_one(Scalar x) {
  return x < 0 ? Scalar{0} : x > 1 ? Scalar{1} : x;
}

/// Turns one row's raw scores, float32 or float64, into values, in place; the one value of Argmax and of
/// WeightedMedian comes first.
template <class Scalar>  // NOLINTNEXTLINE(readability-function-size): one case for each transform
FVM_HOST_DEVICE inline void transform_row(Transform transform, Scalar* scores, std::uint32_t outputs,
                                          TransformParameters parameters = {}) {
  const Scalar slope = static_cast<Scalar>(parameters.slope);
  divide(scores, outputs, static_cast<Scalar>(parameters.divisor));
  switch (transform) {
    case Transform::Identity:
    case Transform::Average:
      return;
    case Transform::Sigmoid:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = sigmoid_of(slope * scores[i]);
      return;
    case Transform::Softmax:
      divide(scores, outputs, slope);
      softmax(scores, outputs, [](Scalar x) { return exp_of(x); });
      return;
    case Transform::Argmax:
      scores[0] = static_cast<Scalar>(argmax(scores, outputs));
      return;
    case Transform::Exp:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = exp_of(scores[i]);
      return;
    case Transform::Step:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = static_cast<Scalar>(scores[i] > 0);
      return;
    case Transform::SignedSquare:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = signed_square(scores[i]);
      return;
    case Transform::Log1pExp:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = log1p_exp(scores[i]);
      return;
    case Transform::Logistic:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = logistic_of(scores[i]);
      return;
    case Transform::Uncertainty:
      scores[1] = table_exp_of(2 * scores[1]);
      return;
    case Transform::Anomaly:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = exp2_of(-(scores[i] / slope));
      return;
    case Transform::AnomalyDecision:
      for (std::uint32_t i = 0; i < outputs; ++i)
        scores[i] = -exp2_of(-(scores[i] / slope)) - static_cast<Scalar>(parameters.offset);
      return;
    case Transform::Clamp:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = cut_to_one(scores[i]);
      return;
    case Transform::SoftmaxZero:
      softmax_zero(scores, outputs);
      return;
    case Transform::PlainSigmoid:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = plain_sigmoid_of(slope * scores[i]);
      return;
    case Transform::RoundedSoftmax:
      rounded_softmax(scores, outputs);
      return;
    case Transform::PlainSoftmax:
      plain_softmax(scores, outputs);
      return;
    case Transform::CutExp:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = cut_exp(scores[i]);
      return;
    case Transform::PowerExp:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = power_exp(scores[i], parameters.slope);
      return;
    case Transform::PowerSigmoid:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = power_sigmoid(scores[i], parameters.slope);
      return;
    case Transform::PowerSoftmax:
      power_softmax(scores, outputs, parameters.slope);
      return;
    case Transform::TableExp:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = table_exp_of(scores[i]);
      return;
    case Transform::TableSoftmax:
      softmax(scores, outputs, [](Scalar x) { return table_exp_of(x); });
      return;
    case Transform::WeightedMedian:
      scores[0] = weighted_median(scores, outputs / 2);
      return;
    case Transform::Sorted:
      sort_scores(scores, scores, outputs);
      return;
    case Transform::SoftplusSteps:
      softplus_steps(scores, outputs);
      return;
  }
}

/// Returns value `k` of a row, which its transformed scores give.
template <class Scalar>
FVM_HOST_DEVICE inline Scalar value_of(Pair pair, const Scalar* scores, std::uint32_t k) {
  switch (pair) {
    case Pair::None:
      return scores[k];
    case Pair::Complement:
      return k == 0 ? 1 - scores[0] : scores[0];
    case Pair::Negation:
      return k == 0 ? -scores[0] : scores[0];
  }
  return scores[k];
}

/// Turns one row's values, or its raw scores if takes_raw_scores(rule), into label_width() labels. Values of a pair are
/// one value here.
template <class Scalar>
FVM_HOST_DEVICE inline void label_row(ClassRule rule, const Scalar* values, std::uint32_t outputs,
                                      std::int64_t* labels, TransformParameters parameters = {}) {
  switch (rule) {
    case ClassRule::None:
      return;
    case ClassRule::AboveHalf:
    case ClassRule::RawAboveHalf:
      for (std::uint32_t i = 0; i < outputs; ++i) labels[i] = values[i] > Scalar{0.5};
      return;
    case ClassRule::Positive:
    case ClassRule::RawPositive:
      for (std::uint32_t i = 0; i < outputs; ++i) labels[i] = values[i] > 0;
      return;
    case ClassRule::RawNotNegative:
      for (std::uint32_t i = 0; i < outputs; ++i) labels[i] = values[i] >= 0;
      return;
    case ClassRule::Negative:
      for (std::uint32_t i = 0; i < outputs; ++i) labels[i] = values[i] < 0;
      return;
    case ClassRule::HalfOrMore:
      for (std::uint32_t i = 0; i < outputs; ++i) labels[i] = values[i] >= Scalar{0.5};
      return;
    case ClassRule::NotPositive:
      for (std::uint32_t i = 0; i < outputs; ++i) labels[i] = values[i] <= 0;
      return;
    case ClassRule::Argmax:
      labels[0] = argmax(values, outputs);
      return;
    case ClassRule::ArgmaxOfEach: {
      std::uint32_t label = 0;
      for (std::uint32_t begin = 0, i = 0; i < outputs; ++i) {
        if ((parameters.group_ends >> i & 1) == 0) continue;
        labels[label++] = begin + argmax(values + begin, i + 1 - begin);
        begin = i + 1;
      }
      return;
    }
    case ClassRule::RawArgmax:
      labels[0] = argmax(values, outputs, static_cast<Scalar>(parameters.divisor));
      return;
    case ClassRule::RawAboveOffset:
      for (std::uint32_t i = 0; i < outputs; ++i)
        labels[i] = values[i] > static_cast<Scalar>(parameters.offset);
      return;
    case ClassRule::Value:
      labels[0] = static_cast<std::int64_t>(values[0]);
      return;
  }
}

}  // namespace forestvm
