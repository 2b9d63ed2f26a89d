// Output transforms: the last step of a prediction, one implementation for the host and every device.
// In: raw scores; out: what the trainer's predict gives, and labels. Rows: transforms.def, class_rules.def.
#pragma once

#include <cstdint>
#include <limits>

#include <forestvm/core/platform.hpp>

namespace forestvm {

/// From raw scores to the trainer's predict; rows in transforms.def.
enum class Transform : std::uint8_t {
#define FVM_TRANSFORM(Name, text, meaning) Name,
#include <forestvm/core/transforms.def>
};

/// From values to labels; rows in class_rules.def.
enum class ClassRule : std::uint8_t {
#define FVM_CLASS_RULE(Name, text, meaning) Name,
#include <forestvm/core/class_rules.def>
};

/// Values per row after a transform of `outputs` raw scores.
FVM_HOST_DEVICE constexpr std::uint32_t value_width(Transform transform, std::uint32_t outputs) {
  return transform == Transform::Argmax ? 1 : outputs;
}

/// Labels per row; 0 if the model has no classes.
FVM_HOST_DEVICE constexpr std::uint32_t label_width(ClassRule rule, std::uint32_t outputs) {
  switch (rule) {
    case ClassRule::None:
      return 0;
    case ClassRule::AboveHalf:
    case ClassRule::Positive:
      return outputs;
    case ClassRule::Argmax:
    case ClassRule::Value:
      return 1;
  }
  return 0;
}

/// exp of a float32, within 1 ulp of the correctly rounded result, the same bits on every device.
/// Cody-Waite reduction and a degree-13 polynomial in float64 (truncation error 4e-18), rounded once.
FVM_HOST_DEVICE inline float exp_f32(float x) {
  if (x != x) return x;
  if (x > 88.8f) return std::numeric_limits<float>::infinity();
  if (x < -104.0f) return 0.0f;
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  const double scaled = static_cast<double>(x) * kLog2E;
  const std::int32_t n = static_cast<std::int32_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
  const double r = (static_cast<double>(x) - n * kLn2High) - n * kLn2Low;
  constexpr double kInverseFactorials[] = {1.0 / 6227020800.0,
                                           1.0 / 479001600.0,
                                           1.0 / 39916800.0,
                                           1.0 / 3628800.0,
                                           1.0 / 362880.0,
                                           1.0 / 40320.0,
                                           1.0 / 5040.0,
                                           1.0 / 720.0,
                                           1.0 / 120.0,
                                           1.0 / 24.0,
                                           1.0 / 6.0,
                                           0.5,
                                           1.0,
                                           1.0};
  double sum = 0;
  for (double factor : kInverseFactorials) sum = sum * r + factor;
  const std::uint64_t bits = static_cast<std::uint64_t>(1023 + n) << 52;
  double power;
  __builtin_memcpy(&power, &bits, sizeof power);
  const double result = sum * power;
  constexpr double kMax = static_cast<double>(std::numeric_limits<float>::max());
  return result > kMax ? std::numeric_limits<float>::infinity() : static_cast<float>(result);
}

/// 1 / (1 + exp(-x)) as XGBoost computes it: the exponent's argument is cut at 88.7 so that it stays finite.
FVM_HOST_DEVICE inline float sigmoid_f32(float x) {
  const float argument = -x > 88.7f ? 88.7f : -x;
  return 1.0f / (exp_f32(argument) + 1.0f);
}

/// Index of the first largest of `count` scores.
FVM_HOST_DEVICE inline std::uint32_t argmax(const float* scores, std::uint32_t count) {
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < count; ++i)
    if (scores[i] > scores[best]) best = i;
  return best;
}

FVM_HOST_DEVICE inline void softmax_f32(float* scores, std::uint32_t count) {
  float largest = scores[0];
  for (std::uint32_t i = 1; i < count; ++i)
    if (scores[i] > largest) largest = scores[i];
  double sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    scores[i] = exp_f32(scores[i] - largest);
    sum += static_cast<double>(scores[i]);
  }
  const float total = static_cast<float>(sum);
  for (std::uint32_t i = 0; i < count; ++i) scores[i] /= total;
}

/// Turns one row's raw scores into values, in place; an Argmax's one value is the first.
FVM_HOST_DEVICE inline void transform_row(Transform transform, float* scores, std::uint32_t outputs) {
  switch (transform) {
    case Transform::Identity:
      return;
    case Transform::Sigmoid:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = sigmoid_f32(scores[i]);
      return;
    case Transform::Softmax:
      softmax_f32(scores, outputs);
      return;
    case Transform::Argmax:
      scores[0] = static_cast<float>(argmax(scores, outputs));
      return;
    case Transform::Exp:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = exp_f32(scores[i]);
      return;
    case Transform::Step:
      for (std::uint32_t i = 0; i < outputs; ++i) scores[i] = scores[i] > 0.0f ? 1.0f : 0.0f;
      return;
  }
}

/// Turns one row's values into label_width() labels.
FVM_HOST_DEVICE inline void label_row(ClassRule rule, const float* values, std::uint32_t outputs,
                                      std::int64_t* labels) {
  switch (rule) {
    case ClassRule::None:
      return;
    case ClassRule::AboveHalf:
      for (std::uint32_t i = 0; i < outputs; ++i) labels[i] = values[i] > 0.5f;
      return;
    case ClassRule::Positive:
      for (std::uint32_t i = 0; i < outputs; ++i) labels[i] = values[i] > 0.0f;
      return;
    case ClassRule::Argmax:
      labels[0] = argmax(values, outputs);
      return;
    case ClassRule::Value:
      labels[0] = static_cast<std::int64_t>(values[0]);
      return;
  }
}

}  // namespace forestvm
