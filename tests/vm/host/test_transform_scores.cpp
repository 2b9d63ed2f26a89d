// Transforms of many scores in vectors: they have the bits of transform_row, which takes a row at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <forestvm/backend.hpp>
#include <forestvm/core/transform.hpp>

#include "vm/host/targets/target.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_transform_scores {
namespace {

using host::ScoreFunction;

/// Returns scores of all sizes, and those at which functions have limits or steps.
template <class Score>
std::vector<Score> many_scores() {
  using Limits = std::numeric_limits<Score>;
  std::vector<Score> scores = {0,
                               Score{-0.0},
                               1,
                               -1,
                               Limits::infinity(),
                               -Limits::infinity(),
                               Limits::quiet_NaN(),
                               Limits::max(),
                               Limits::lowest(),
                               Limits::min(),
                               -Limits::denorm_min()};
  for (const double limit : {88.7, 88.722839, 88.8, 87.336548, 103.97208, 104.0, 709.782712893384, 709.79,
                             708.3964185322641, 745.1332191019411, 745.14, 0.34657359027997264, 1e-20})
    for (const double sign : {1.0, -1.0}) {
      const Score score = static_cast<Score>(sign * limit);
      for (const Score beside :
           {std::nextafter(score, Limits::max()), score, std::nextafter(score, Limits::lowest())})
        scores.push_back(beside);
    }
  std::mt19937_64 random(7);
  for (const double size : {1e-3, 1.0, 10.0, 100.0, 800.0})
    for (int i = 0; i < 400; ++i)
      scores.push_back(static_cast<Score>(size * (static_cast<double>(random() >> 11) * 0x1p-52 - 1)));
  return scores;
}

template <class Score>
bool same_bits(Score a, Score b) {
  using Bits = std::conditional_t<sizeof(Score) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b) || (std::isnan(a) && std::isnan(b));
}

struct Case {
  ScoreFunction function;
  Transform transform;
};

template <class Score>
void expect_bits_of_single_scores(const host::Target& target, const Case& one, double slope) {
  constexpr bool kWide = std::is_same_v<Score, double>;
  static const host::RootPowers roots;
  const std::vector<Score> scores = many_scores<Score>();
  std::vector<Score> expected = scores;
  for (Score& score : expected) transform_row(one.transform, &score, 1, {.slope = slope});
  for (std::size_t begin = 0, count = 1; begin + count < scores.size();
       begin += count, count = count % 37 + 1) {
    // The place is aligned for a number only, and the numbers around it must stay.
    std::vector<Score> block(scores.begin() + static_cast<std::ptrdiff_t>(begin),
                             scores.begin() + static_cast<std::ptrdiff_t>(begin + count));
    block.insert(block.begin(), Score{-7});
    block.push_back(Score{-7});
    target.scores_function()({one.function, kWide, block.data() + 1, count, slope, &roots});
    EXPECT_EQ(block.front(), Score{-7});
    EXPECT_EQ(block.back(), Score{-7});
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_TRUE(same_bits(block[i + 1], expected[begin + i]))
          << target.name << ": " << scores[begin + i] << " becomes " << block[i + 1] << ", expected "
          << expected[begin + i];
  }
}

TEST(TransformScores, HaveTheBitsOfSingleScores) {
  int compared = 0;
  for (const host::Target& target : host::targets()) {
    if (!target.runs_here() || target.scores_function() == nullptr) continue;
    ++compared;
    for (const double slope : {1.0, 0.7}) {
      expect_bits_of_single_scores<float>(target, {ScoreFunction::CutSigmoid, Transform::Sigmoid}, slope);
      expect_bits_of_single_scores<float>(target, {ScoreFunction::PlainSigmoid, Transform::PlainSigmoid},
                                          slope);
      expect_bits_of_single_scores<double>(target, {ScoreFunction::PlainSigmoid, Transform::Sigmoid}, slope);
    }
    expect_bits_of_single_scores<float>(target, {ScoreFunction::Exp, Transform::Exp}, 1);
    expect_bits_of_single_scores<double>(target, {ScoreFunction::Exp, Transform::Exp}, 1);
    expect_bits_of_single_scores<double>(target, {ScoreFunction::TableExp, Transform::TableExp}, 1);
  }
  if (compared == 0) GTEST_SKIP() << "no target of this build and CPU transforms scores in vectors";
}

/// Values of a row by itself are computed one at a time, those of many rows in vectors.
TEST(TransformScores, RowsAloneAndAmongOthersHaveTheSameValues) {
  const std::vector<float> rows = [] {
    std::vector<float> drawn(3 * 45);
    std::mt19937 random(3);
    for (float& value : drawn) value = static_cast<float>(random() % 2001) / 500.0f - 2.0f;
    return drawn;
  }();
  for (const ScalarType type : {ScalarType::Float32, ScalarType::Float64})
    for (const Transform transform : {Transform::Sigmoid, Transform::PlainSigmoid, Transform::Exp,
                                      Transform::Softmax, Transform::TableExp, Transform::TableSoftmax})
      for (const double divisor : {1.0, 3.0}) {
        Model model = small_forest();
        model.score_type = type;
        model.transform = transform;
        model.divisor = divisor;
        model.slope = transform == Transform::Exp ? 1 : 1.7;
        const Program program = compiled(model, "");
        const auto predictor = host_backend(program);
        ASSERT_TRUE(predictor.ok()) << predictor.error().text();
        const auto context = (*predictor)->make_context();
        std::vector<float> together(rows.size()), alone(rows.size());
        const auto predict = [&](std::size_t row, std::size_t count, std::vector<float>& values) {
          const RowBlock block{rows.data() + 3 * row, count, 3};
          EXPECT_TRUE(
              (*predictor)->predict(*context, block, OutputKind::Value, values.data() + 3 * row).ok());
        };
        predict(0, 45, together);
        for (std::size_t row = 0; row < 45; ++row) predict(row, 1, alone);
        EXPECT_EQ(together, alone) << static_cast<int>(transform);
      }
}

}  // namespace
}  // namespace forestvm::test::test_transform_scores
