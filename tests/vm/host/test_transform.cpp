// Output transforms: exp against float64's exp, the others at their edges.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <forestvm/core/transform.hpp>

#include "support/floats.hpp"

namespace forestvm::test::test_transform {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Maps floats to integers in the same order: neighbours differ by 1, also across zero.
std::int64_t ordinal(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits & 0x80000000u) != 0 ? -static_cast<std::int64_t>(bits & 0x7fffffffu)
                                   : static_cast<std::int64_t>(bits);
}

/// Returns the ulps between exp_f32(x) and the correctly rounded result. float64's exp is within 1 ulp of
/// float64, so rounding it is correct except for ties, to which no float32 argument comes near.
std::int64_t exp_error(float x) {
  const float right = static_cast<float>(std::exp(static_cast<double>(x)));
  return std::abs(ordinal(exp_f32(x)) - ordinal(right));
}

TEST(ExpF32, WithinOneUlpOverAllFloats) {
  std::int64_t worst = 0;
  float worst_at = 0;
  std::uint64_t wrong = 0, count = 0;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 997) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(x)) continue;
    const std::int64_t error = exp_error(x);
    ++count;
    wrong += error != 0;
    if (error > worst) worst = error, worst_at = x;
  }
  EXPECT_LE(worst, 1) << "at " << worst_at;
  // A series with fewer terms would stay within an ulp but round some results wrongly.
  EXPECT_EQ(wrong, 0u) << "of " << count << " are not correctly rounded";
}

TEST(ExpF32, WithinOneUlpWhereItOverflowsAndUnderflows) {
  for (const float around : {88.722839f, 88.8f, -87.336548f, -103.27893f, -103.97208f, -104.0f, 0.0f, 1.0f}) {
    float up = around, down = around;
    for (int i = 0; i < 20000; ++i) {
      ASSERT_LE(exp_error(up), 1) << up;
      ASSERT_LE(exp_error(down), 1) << down;
      up = std::nextafter(up, kInf);
      down = std::nextafter(down, -kInf);
    }
  }
}

TEST(ExpF32, NeverFallsAsItsArgumentRises) {
  float last = 0;
  for (double x = -110; x < 95; x += 0.0001) {
    const float y = exp_f32(static_cast<float>(x));
    ASSERT_GE(y, last) << x;
    last = y;
  }
}

TEST(ExpF32, Edges) {
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-0.0f), 1.0f);
  EXPECT_EQ(exp_f32(std::numeric_limits<float>::denorm_min()), 1.0f);
  EXPECT_EQ(exp_f32(kInf), kInf);
  EXPECT_EQ(exp_f32(-kInf), 0.0f);
  EXPECT_FALSE(std::signbit(exp_f32(-kInf)));
  EXPECT_TRUE(std::isnan(exp_f32(kNan)));
  EXPECT_EQ(exp_f32(std::numeric_limits<float>::max()), kInf);
  EXPECT_EQ(exp_f32(std::numeric_limits<float>::lowest()), 0.0f);
}

/// Returns the ulps between a float64 result and long double's, rounded once.
std::int64_t ulps_from(double got, long double right) {
  return support::ulps(got, static_cast<double>(right));
}

TEST(ExpF64, WithinOneUlp) {
  static_assert(std::numeric_limits<long double>::digits > std::numeric_limits<double>::digits);
  std::int64_t worst = 0;
  std::uint64_t wrong = 0, count = 0;
  for (double x = -745.2; x < 709.8; x += 0.00037, ++count) {
    const std::int64_t error = ulps_from(exp_f64(x), std::exp(static_cast<long double>(x)));
    worst = std::max(worst, error);
    wrong += error != 0;
  }
  for (double x = 1e-20; x < 1; x *= 1.0001)
    for (const double at : {x, -x})
      worst = std::max(worst, ulps_from(exp_f64(at), std::exp(static_cast<long double>(at))));
  EXPECT_LE(worst, 1);
  EXPECT_LE(wrong, count / 20) << "of " << count << " are not correctly rounded";
}

TEST(ExpF64, Edges) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(exp_f64(0.0), 1.0);
  EXPECT_EQ(exp_f64(-0.0), 1.0);
  EXPECT_EQ(exp_f64(std::numeric_limits<double>::denorm_min()), 1.0);
  EXPECT_EQ(exp_f64(inf), inf);
  EXPECT_EQ(exp_f64(-inf), 0.0);
  EXPECT_EQ(exp_f64(709.782712893384), std::exp(709.782712893384));
  EXPECT_EQ(exp_f64(709.7827128933841), inf);
  EXPECT_EQ(exp_f64(-745.1332191019411), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(exp_f64(-745.1332191019412), 0.0);
  EXPECT_TRUE(std::isnan(exp_f64(std::nan(""))));
}

/// The powers are those of a table that the C library's pow fills.
TEST(TableExp, HasTheTablesBits) {
  for (std::uint32_t i = 0; i < 2048; ++i) ASSERT_EQ(root_power(i), std::pow(2.0, i / 2048.0)) << i;
}

/// The error grows with x, which is reduced without a correction.
TEST(TableExp, IsNearExp) {
  double worst = 0;
  for (double x = -708; x < 709; x += 0.00713) {
    const auto apart = static_cast<double>(support::ulps(table_exp(x), std::exp(x)));
    EXPECT_LE(apart, 3 + 2 * std::abs(x)) << x;
    worst = std::max(worst, apart);
  }
  EXPECT_GT(worst, 300) << "CatBoost's function is less precise than the C library's";
}

TEST(TableExp, Edges) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(table_exp(0.0), 1.0);
  EXPECT_EQ(table_exp(-0.0), 1.0);
  EXPECT_EQ(table_exp(inf), inf);
  EXPECT_EQ(table_exp(-inf), 0.0);
  EXPECT_EQ(table_exp(-708.4), 0.0);
  EXPECT_GT(table_exp(-708.39), std::numeric_limits<double>::min());
  EXPECT_LT(table_exp(709.78), inf);
  EXPECT_EQ(table_exp(709.79), inf);
  EXPECT_TRUE(std::isnan(table_exp(std::nan(""))));
}

/// The numbers are those of CatBoost 1.2.10 on x86.
TEST(TableExp, IsCatBoosts) {
  std::vector<double> scores = {4.815822128970819, 0.7968295970612344, -1.9072108552052316,
                                -3.7054408708268087};
  transform_row(Transform::TableSoftmax, scores.data(), 4);
  EXPECT_EQ(scores, (std::vector<double>{0.980995052251056, 0.017629522015861557, 0.0011800235923559391,
                                         0.0001954021407265022}));
}

TEST(WeightedMedian, IsTheFirstWithHalfOfTheWeights) {
  const auto median = [](std::vector<double> scores) {
    transform_row(Transform::WeightedMedian, scores.data(), static_cast<std::uint32_t>(scores.size()));
    return scores[0];
  };
  EXPECT_EQ(median({7, 1}), 7);
  EXPECT_EQ(median({3, 1, 2, 1, 1, 1}), 2);
  EXPECT_EQ(median({3, 1, 1, 1}), 1) << "half of the weights is enough";
  EXPECT_EQ(median({3, 1, 2, 1, 5, 1}), 1);
  EXPECT_EQ(median({3, 1, 2, 9, 1, 1}), 3);
  EXPECT_EQ(median({-1, -1, 4, 1, 1, 3}), 4);
  EXPECT_EQ(median({1, 2, 0, 0}), 1) << "no weights";
  // Sums are rounded one after the other, in ascending order of the scores: 1 + 2^-53 + 2^-53 is 1.
  EXPECT_EQ(median({0, 1, 2, 3, 1, 0x1p-53, 0x1p-53, 1}), 0);
  EXPECT_EQ(median({2, 1, 0, 3, 1, 0x1p-53, 0x1p-53, 1}), 2);
  for (std::uint32_t count = 1; count < 200; count += 7) {
    std::vector<double> scores;
    for (std::uint32_t i = 0; i < count; ++i) scores.push_back(i * 211 % count);
    scores.resize(2 * count, 1);
    EXPECT_EQ(median(scores), (count - 1) / 2) << count;
  }
}

TEST(Sorted, IsInAscendingOrder) {
  for (std::uint32_t count = 1; count < 700; count += 7) {
    std::vector<float> scores;
    for (std::uint32_t i = 0; i < count; ++i) scores.push_back(static_cast<float>(i * 211 % 311));
    std::vector<float> sorted = scores;
    std::sort(sorted.begin(), sorted.end());
    transform_row(Transform::Sorted, scores.data(), count);
    EXPECT_EQ(scores, sorted) << count;
  }
  std::vector<float> scores = {kNan, 2, -kInf, kNan, kInf, 1};
  transform_row(Transform::Sorted, scores.data(), 6);
  EXPECT_EQ(std::vector<float>(scores.begin(), scores.begin() + 4), (std::vector<float>{-kInf, 1, 2, kInf}));
  EXPECT_TRUE(std::isnan(scores[4]) && std::isnan(scores[5]));
}

/// The numbers are those of XGBoost 3.4.1.
TEST(SoftplusSteps, AddsToTheValueBefore) {
  std::vector<float> scores = {-0.6232436f, 3.319027f, -14.054701f};
  transform_row(Transform::SoftplusSteps, scores.data(), 3);
  EXPECT_EQ(scores, (std::vector<float>{-0.6232436f, 2.731333f, 2.7313347f}));
  scores = {5, -1000, 1000};
  transform_row(Transform::SoftplusSteps, scores.data(), 3);
  EXPECT_EQ(scores, (std::vector<float>{5, 5.000001f, 1005.000001f}));
}

TEST(ArgmaxOfEach, NumbersTheOutputs) {
  const double values[] = {0.5, 0.5, 3, 1, 2, 3, 7};
  std::int64_t labels[4];
  label_row(ClassRule::ArgmaxOfEach, values, 7, labels, {.group_ends = 0b1100010});
  EXPECT_EQ(labels[0], 0);
  EXPECT_EQ(labels[1], 2);
  EXPECT_EQ(labels[2], 6);
  EXPECT_EQ(label_width(ClassRule::ArgmaxOfEach, 7, 0b1100010), 3u);
  std::vector<double> most(kMaxGroupedOutputs);
  label_row(ClassRule::ArgmaxOfEach, most.data(), kMaxGroupedOutputs, labels,
            {.group_ends = std::uint64_t{1} << 63});
  EXPECT_EQ(labels[0], 0);
}

TEST(Log1pF64, WithinOneUlp) {
  std::int64_t worst = 0;
  for (double y = 1e-320; y < 1e300; y *= 1.00093)
    worst = std::max(worst, ulps_from(log1p_f64(y), std::log1p(static_cast<long double>(y))));
  for (double y = 0; y < 8; y += 0.0000137)
    worst = std::max(worst, ulps_from(log1p_f64(y), std::log1p(static_cast<long double>(y))));
  EXPECT_LE(worst, 1);
  EXPECT_EQ(log1p_f64(0.0), 0.0);
  EXPECT_EQ(log1p_f64(std::numeric_limits<double>::max()), std::log1p(std::numeric_limits<double>::max()));
  EXPECT_EQ(log1p_f64(std::numeric_limits<double>::infinity()), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(log1p_f64(std::nan(""))));
}

TEST(SigmoidF32, Edges) {
  EXPECT_EQ(sigmoid_of(0.0f), 0.5f);
  EXPECT_EQ(sigmoid_of(-0.0f), 0.5f);
  EXPECT_EQ(sigmoid_of(kInf), 1.0f);
  EXPECT_EQ(sigmoid_of(100.0f), 1.0f);
  EXPECT_TRUE(std::isnan(sigmoid_of(kNan)));
  // XGBoost cuts the argument at 88.7, so the smallest value is above zero.
  EXPECT_EQ(sigmoid_of(-kInf), sigmoid_of(-88.7f));
  EXPECT_GT(sigmoid_of(-kInf), 0.0f);
  for (float x = -90; x < 90; x += 0.01f) {
    ASSERT_GE(sigmoid_of(x), 0.0f) << x;
    ASSERT_LE(sigmoid_of(x), 1.0f) << x;
  }
}

std::vector<float> transformed(Transform transform, std::vector<float> scores) {
  transform_row(transform, scores.data(), static_cast<std::uint32_t>(scores.size()));
  return scores;
}

TEST(SoftmaxF32, Edges) {
  using enum Transform;
  EXPECT_EQ(transformed(Softmax, {3.5f}), std::vector<float>{1.0f});
  EXPECT_EQ(transformed(Softmax, {-2.0f, -2.0f}), (std::vector<float>{0.5f, 0.5f}));
  EXPECT_EQ(transformed(Softmax, {3e38f, -3e38f, 0.0f}), (std::vector<float>{1.0f, 0.0f, 0.0f}));
  const auto equal = transformed(Softmax, std::vector<float>(1000, -77.0f));
  for (const float p : equal) EXPECT_EQ(p, 0.001f);
  const auto with_nan = transformed(Softmax, {1.0f, kNan, 2.0f});
  for (const float p : with_nan) EXPECT_TRUE(std::isnan(p));
  float sum = 0;
  for (const float p : transformed(Softmax, {0.1f, 2.0f, -3.0f, 0.7f})) sum += p;
  EXPECT_NEAR(sum, 1.0f, 1e-6f);
}

TEST(Argmax, FirstLargest) {
  const auto of = [](std::vector<float> scores) {
    return argmax(scores.data(), static_cast<std::uint32_t>(scores.size()));
  };
  EXPECT_EQ(of({5.0f}), 0u);
  EXPECT_EQ(of({1.0f, 3.0f, 3.0f}), 1u);
  EXPECT_EQ(of({-0.0f, 0.0f}), 0u);
  EXPECT_EQ(of({0.0f, kNan, 1.0f}), 2u);
  EXPECT_EQ(of({kNan, 1.0f, 2.0f}), 0u);  // nothing is greater than NaN
  EXPECT_EQ(of({-kInf, -kInf}), 0u);
  EXPECT_EQ(of({-1.0f, kInf}), 1u);
  EXPECT_EQ(transformed(Transform::Argmax, {1.0f, 4.0f, 2.0f})[0], 1.0f);
}

TEST(Step, Edges) {
  EXPECT_EQ(transformed(Transform::Step,
                        {-1.0f, -0.0f, 0.0f, std::numeric_limits<float>::denorm_min(), kInf, -kInf, kNan}),
            (std::vector<float>{0, 0, 0, 1, 1, 0, 0}));
}

/// Float64 scores are compared with the C library's functions, whose own error adds to ours.
TEST(Float64, WithinThreeUlpOfTheFormulas) {
  for (double x = -40; x < 40; x += 0.0101) {
    const auto one = [x](Transform transform, double divisor = 1, double slope = 1) {
      double score = x;
      transform_row(transform, &score, 1, {divisor, slope});
      return score;
    };
    EXPECT_EQ(one(Transform::Identity), x);
    EXPECT_EQ(one(Transform::Average, 7), x / 7);
    EXPECT_EQ(one(Transform::SignedSquare), x < 0 ? -(x * x) : x * x);
    EXPECT_LE(support::ulps(one(Transform::Exp), std::exp(x)), 1) << x;
    EXPECT_LE(support::ulps(one(Transform::Sigmoid), 1 / (1 + std::exp(-x))), 2) << x;
    EXPECT_LE(support::ulps(one(Transform::Sigmoid, 3, 0.7), 1 / (1 + std::exp(-0.7 * (x / 3)))), 2) << x;
    EXPECT_LE(support::ulps(one(Transform::Log1pExp), std::log1p(std::exp(x))), 2) << x;
    double row[3] = {x, 1, -x};
    transform_row(Transform::Softmax, row, 3);
    const double largest = std::max({x, 1.0, -x});
    const double sum = std::exp(x - largest) + std::exp(1 - largest) + std::exp(-x - largest);
    EXPECT_LE(support::ulps(row[1], std::exp(1 - largest) / sum), 3) << x;
  }
  double far = -1000;
  transform_row(Transform::Sigmoid, &far, 1);
  EXPECT_EQ(far, 0.0) << "LightGBM does not cut the argument";
  std::int64_t label = 7;
  const double half = 0.5;
  label_row(ClassRule::AboveHalf, &half, 1, &label);
  EXPECT_EQ(label, 0);
}

TEST(Labels, OfRawScores) {
  const double scores[] = {1.75, std::nextafter(1.75, 2.0), 0};
  std::int64_t label = 7;
  label_row(ClassRule::RawArgmax, scores, 3, &label);
  EXPECT_EQ(label, 1);
  label_row(ClassRule::RawArgmax, scores, 3, &label, {.divisor = 3});  // rounds the two to one quotient
  EXPECT_EQ(label, 0);
  label_row(ClassRule::RawAboveOffset, scores, 1, &label, {.offset = 1.75});
  EXPECT_EQ(label, 0);
  label_row(ClassRule::RawAboveOffset, scores + 1, 1, &label, {.offset = 1.75});
  EXPECT_EQ(label, 1);
}

TEST(Parameters, DivideTheArgumentsOfSoftmax) {
  double divided[] = {0.7, 6.1, -3.3}, plain[3];
  for (int i = 0; i < 3; ++i) plain[i] = divided[i] / 7 / 3;
  transform_row(Transform::Softmax, divided, 3, {.divisor = 7, .slope = 3});
  transform_row(Transform::Softmax, plain, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(divided[i], plain[i]);
}

TEST(Parameters, CountInFloat32Too) {
  float score = 6;
  transform_row(Transform::Average, &score, 1, {4, 1});
  EXPECT_EQ(score, 1.5f);
  score = 6;
  transform_row(Transform::Sigmoid, &score, 1, {4, 2});
  EXPECT_EQ(score, sigmoid_of(3.0f));
  score = -3;
  transform_row(Transform::SignedSquare, &score, 1);
  EXPECT_EQ(score, -9.0f);
  score = 1;
  transform_row(Transform::Log1pExp, &score, 1);
  EXPECT_EQ(score, static_cast<float>(std::log1p(std::exp(1.0))));
}

TEST(PlainSigmoid, HasNoLimit) {
  EXPECT_EQ(transformed(Transform::PlainSigmoid, {0.0f, -100.0f, 100.0f, -kInf}),
            (std::vector<float>{0.5f, 0.0f, 1.0f, 0.0f}));
  EXPECT_EQ(transformed(Transform::PlainSigmoid, {-88.71f})[0], 1.0f / (1.0f + exp_f32(88.71f)));
}

/// Treelite's float32 log(1 + exp(x)) overflows where exp does.
TEST(Log1pExp, OverflowsInFloat32) {
  EXPECT_EQ(transformed(Transform::Log1pExp, {88.8f, 88.7f}),
            (std::vector<float>{kInf, static_cast<float>(log1p_f64(static_cast<double>(exp_f32(88.7f))))}));
}

TEST(RoundedSoftmax, KeepsTheMaximumAndThePowersInFloat32) {
  const double scores[] = {0.1, 1.3, -2.7};
  double row[] = {0.1, 1.3, -2.7};
  transform_row(Transform::RoundedSoftmax, row, 3);
  double powers[3], sum = 0;
  for (int i = 0; i < 3; ++i)
    sum += powers[i] = static_cast<double>(
        static_cast<float>(std::exp(scores[i] - static_cast<double>(static_cast<float>(1.3)))));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(row[i], powers[i] / static_cast<double>(static_cast<float>(sum)));
  EXPECT_EQ(transformed(Transform::RoundedSoftmax, {0.5f, -1.5f, 2.25f}),
            transformed(Transform::Softmax, {0.5f, -1.5f, 2.25f}));
}

TEST(PlainSoftmax, SubtractsNothing) {
  const float sum = exp_f32(0.5f) + exp_f32(-1.5f), factor = 1 / sum;
  EXPECT_EQ(transformed(Transform::PlainSoftmax, {0.5f, -1.5f}),
            (std::vector<float>{exp_f32(0.5f) * factor, exp_f32(-1.5f) * factor}));
  EXPECT_TRUE(std::isnan(transformed(Transform::PlainSoftmax, {100.0f, 0.0f})[0]));
}

TEST(CutExp, Edges) {
  EXPECT_EQ(transformed(Transform::CutExp, {25.0f, -25.0f, 1.0f, kInf}),
            (std::vector<float>{exp_f32(19.0f), exp_f32(-19.0f), exp_f32(1.0f), exp_f32(19.0f)}));
  EXPECT_TRUE(std::isnan(transformed(Transform::CutExp, {kNan})[0]));
}

TEST(PowerExp, RaisesTheBaseWhoseLogarithmIsTheSlope) {
  std::vector<float> scores = {10.0f, -3.5f, kInf, -kInf, kNan};
  transform_row(Transform::PowerExp, scores.data(), 5, {1, std::log(2.7182817)});
  EXPECT_EQ(scores[0], static_cast<float>(std::pow(2.7182817, 10.0)));
  EXPECT_NE(scores[0], exp_f32(10.0f));
  EXPECT_EQ(scores[1], static_cast<float>(std::pow(2.7182817, -3.5)));
  EXPECT_EQ(scores[2], kInf);
  EXPECT_EQ(scores[3], 0.0f);
  EXPECT_TRUE(std::isnan(scores[4]));
}

TEST(PowerSigmoid, UsesPowerExp) {
  std::vector<float> scores = {10.0f, -kInf, kNan};
  transform_row(Transform::PowerSigmoid, scores.data(), 3, {1, std::log(2.0)});
  EXPECT_EQ(scores[0], 1.0f / (1.0f + 0x1p-10f));
  EXPECT_EQ(scores[1], 0.0f);
  EXPECT_TRUE(std::isnan(scores[2]));
}

TEST(PowerSoftmax, RoundsTheSumAfterEveryOutput) {
  std::vector<float> scores = {24.0f, 0.0f, 0.0f, 0.0f};
  transform_row(Transform::PowerSoftmax, scores.data(), 4, {1, std::log(2.0)});
  // Each 2^-24 is lost beside 1; together they are not.
  EXPECT_EQ(scores, (std::vector<float>{1.0f, 0x1p-24f, 0x1p-24f, 0x1p-24f}));
}

TEST(Anomaly, DividesByTheSlope) {
  float score = 6;
  transform_row(Transform::Anomaly, &score, 1, {2, 1.5});
  EXPECT_EQ(score, 0.25f);
  score = 6;
  transform_row(Transform::AnomalyDecision, &score, 1, {2, 1.5, -0.5});
  EXPECT_EQ(score, 0.25f);
}

TEST(Identity, KeepsEveryBit) {
  const auto same = transformed(Transform::Identity, {kNan, -0.0f, 1e-45f});
  EXPECT_TRUE(std::isnan(same[0]));
  EXPECT_TRUE(std::signbit(same[1]));
  EXPECT_EQ(same[2], 1e-45f);
}

std::vector<std::int64_t> labels(ClassRule rule, std::vector<float> values) {
  const auto outputs = static_cast<std::uint32_t>(values.size());
  std::vector<std::int64_t> out(label_width(rule, outputs));
  label_row(rule, values.data(), outputs, out.data());
  return out;
}

TEST(LabelRow, Edges) {
  using Labels = std::vector<std::int64_t>;
  EXPECT_EQ(labels(ClassRule::None, {1.0f}), Labels{});
  EXPECT_EQ(labels(ClassRule::AboveHalf, {0.5f, std::nextafter(0.5f, 1.0f), kNan, 1.0f}),
            (Labels{0, 1, 0, 1}));
  EXPECT_EQ(labels(ClassRule::Positive, {0.0f, -0.0f, 1e-45f, kNan, -1.0f}), (Labels{0, 0, 1, 0, 0}));
  EXPECT_EQ(labels(ClassRule::Argmax, {0.2f, 0.7f, 0.7f}), Labels{1});
  EXPECT_EQ(labels(ClassRule::Argmax, {kNan, kNan}), Labels{0});
  EXPECT_EQ(labels(ClassRule::Value, {7.0f}), Labels{7});
  EXPECT_EQ(labels(ClassRule::RawPositive, {0.0f, 1e-45f, kNan}), (Labels{0, 1, 0}));
  EXPECT_EQ(labels(ClassRule::RawNotNegative, {-1e-45f, -0.0f, 1.0f, kNan}), (Labels{0, 1, 1, 0}));
  EXPECT_EQ(labels(ClassRule::HalfOrMore, {0.5f, std::nextafter(0.5f, 0.0f), kNan}), (Labels{1, 0, 0}));
  EXPECT_EQ(labels(ClassRule::NotPositive, {0.0f, std::numeric_limits<float>::denorm_min(), kNan}),
            (Labels{1, 0, 0}));
  EXPECT_EQ(labels(ClassRule::RawAboveHalf, {0.5f, std::nextafter(0.5f, 1.0f)}), (Labels{0, 1}));
  EXPECT_EQ(labels(ClassRule::Negative, {-1e-45f, -0.0f, 1.0f, kNan}), (Labels{1, 0, 0, 0}));
}

TEST(Logistic, GivesOneMinusItsMirrorBelowZero) {
  EXPECT_EQ(transformed(Transform::Logistic, {0.0f, -100.0f, 100.0f}),
            (std::vector<float>{0.5f, 0.0f, 1.0f}));
  const float above = transformed(Transform::Logistic, {3.5f})[0];
  EXPECT_EQ(transformed(Transform::Logistic, {-3.5f})[0], 1 - above);
}

TEST(Uncertainty, SquaresTheSecondOutput) {
  EXPECT_EQ(transformed(Transform::Uncertainty, {-7.0f, 0.0f}), (std::vector<float>{-7.0f, 1.0f}));
  EXPECT_EQ(transformed(Transform::Uncertainty, {1.0f, 0.5f})[1], static_cast<float>(std::exp(1.0)));
}

TEST(Anomaly, IsAPowerOfTwo) {
  EXPECT_EQ(transformed(Transform::Anomaly, {3.0f, -2.0f, 0.0f}), (std::vector<float>{0.125f, 4.0f, 1.0f}));
  double score = 4;
  transform_row(Transform::AnomalyDecision, &score, 1, {4, 1, -0.75});
  EXPECT_EQ(score, 0.25);
}

TEST(Exp2, IsWithinAnUlp) {
  for (double x = -1080; x < 1024; x += 0.37119) {
    const double exact = std::exp2(x), mine = exp2_f64(x);
    EXPECT_LE(std::abs(mine - exact), std::nextafter(exact, 2 * exact + 1) - exact) << x;
  }
  EXPECT_EQ(exp2_f64(1024), std::numeric_limits<double>::infinity());
  EXPECT_EQ(exp2_f64(-1074), 0x1p-1074);
  EXPECT_EQ(exp2_f64(-2000), 0.0);
  EXPECT_TRUE(std::isnan(exp2_f64(std::numeric_limits<double>::quiet_NaN())));
}

TEST(Clamp, CutsToProbabilities) {
  EXPECT_EQ(transformed(Transform::Clamp, {-0.5f, 0.25f, 1.5f}), (std::vector<float>{0.0f, 0.25f, 1.0f}));
}

TEST(SoftmaxZero, KeepsZeros) {
  const auto values = transformed(Transform::SoftmaxZero, {0.0f, 1.0f, 1.0f});
  EXPECT_EQ(values, (std::vector<float>{0.0f, 0.5f, 0.5f}));
  EXPECT_EQ(transformed(Transform::SoftmaxZero, {0.0f, 0.0f}), (std::vector<float>{0.0f, 0.0f}));
}

TEST(Pair, MakesTwoValuesOfOne) {
  const float value = 0.25f;
  const auto both = [&](Pair pair) {
    return std::vector<float>{value_of(pair, &value, 0), value_of(pair, &value, 1)};
  };
  EXPECT_EQ(both(Pair::Complement), (std::vector<float>{0.75f, 0.25f}));
  EXPECT_EQ(both(Pair::Negation), (std::vector<float>{-0.25f, 0.25f}));
  EXPECT_EQ(value_width(Transform::Sigmoid, Pair::Complement, 1), 2u);
}

TEST(Widths, OfEveryTransformAndRule) {
  for (const std::uint32_t outputs : {1u, 2u, 65536u}) {
#define FVM_TRANSFORM(number, Name, text, meaning)       \
  EXPECT_EQ(                                             \
      value_width(Transform::Name, Pair::None, outputs), \
      Transform::Name == Transform::Argmax || Transform::Name == Transform::WeightedMedian ? 1u : outputs);
#include <forestvm/core/transforms.def>
    EXPECT_EQ(label_width(ClassRule::None, outputs), 0u);
    EXPECT_EQ(label_width(ClassRule::Value, outputs), 1u);
    EXPECT_EQ(label_width(ClassRule::AboveHalf, outputs), outputs);
  }
}

}  // namespace
}  // namespace forestvm::test::test_transform
