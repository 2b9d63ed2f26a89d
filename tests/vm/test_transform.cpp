// Output transforms: exp against float64's, the others at their edges.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <forestvm/core/transform.hpp>

namespace forestvm::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Floats in order as integers: neighbours differ by 1, also across zero.
std::int64_t place(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits & 0x80000000u) != 0 ? -static_cast<std::int64_t>(bits & 0x7fffffffu)
                                   : static_cast<std::int64_t>(bits);
}

/// Ulps between exp_f32(x) and the correctly rounded result. float64's exp is within 1 ulp of float64, so its
/// rounding is the correct one but for ties that no float32 argument comes near.
std::int64_t exp_error(float x) {
  const float right = static_cast<float>(std::exp(static_cast<double>(x)));
  return std::abs(place(exp_f32(x)) - place(right));
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
  EXPECT_LE(wrong, count / 1000) << "of " << count << " are not correctly rounded";
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
}

TEST(Widths, OfEveryTransformAndRule) {
  for (const std::uint32_t outputs : {1u, 2u, 65536u}) {
#define FVM_TRANSFORM(Name, text, meaning) \
  EXPECT_EQ(value_width(Transform::Name, outputs), Transform::Name == Transform::Argmax ? 1u : outputs);
#include <forestvm/core/transforms.def>
    EXPECT_EQ(label_width(ClassRule::None, outputs), 0u);
    EXPECT_EQ(label_width(ClassRule::Value, outputs), 1u);
    EXPECT_EQ(label_width(ClassRule::AboveHalf, outputs), outputs);
  }
}

}  // namespace
}  // namespace forestvm::test
