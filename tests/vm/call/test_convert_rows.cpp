// Rows of float64 and binary16 get the predictions of the float32 rows to which they round. The expected
// rounding shares nothing with the conversion: the neighbours of a double are compared, a half is taken apart
// into sign, exponent and digits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/floats.hpp"
#include "support/small_models.hpp"
#include "support/targets_here.hpp"
#include "vm/call/convert_rows.hpp"
#include "vm/float_settings.hpp"
#include "vm/small_program.hpp"

namespace forestvm::test::test_convert_rows {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr double kBeyond = 0x1p128;  ///< number that would follow the largest float32

double as_double(float x) { return static_cast<double>(x); }

/// Returns a float32 as a double; for infinity, the first number that float32 lacks.
double on_the_line(float x) { return std::isinf(x) ? std::copysign(kBeyond, as_double(x)) : as_double(x); }

/// Returns the float32 nearest to a double, ties to even. It bisects the floats of the same sign, whose order
/// is that of their bits.
float nearest(double x) {
  if (std::isnan(x)) return std::numeric_limits<float>::quiet_NaN();
  const double size = std::abs(x);
  std::uint32_t low = 0, high = std::bit_cast<std::uint32_t>(
                             kInfinity);  // the largest float not above x is in this range
  while (low < high) {
    const std::uint32_t middle = low + (high - low + 1) / 2;
    if (on_the_line(std::bit_cast<float>(middle)) <= size)
      low = middle;
    else
      high = middle - 1;
  }
  if (std::bit_cast<float>(low) != kInfinity) {
    // The differences of a double and its neighbouring floats are exact.
    const double down = size - on_the_line(std::bit_cast<float>(low));
    const double up = on_the_line(std::bit_cast<float>(low + 1)) - size;
    if (up < down || (up == down && low % 2 == 1)) ++low;
  }
  return std::copysign(std::bit_cast<float>(low), static_cast<float>(std::signbit(x) ? -1 : 1));
}

/// Returns the value of a binary16: its digits times a power of two.
float value_of(std::uint16_t half) {
  const int exponent = half >> 10 & 31, digits = half & 1023;
  double size = 0;
  if (exponent == 31)
    size = digits != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    size = std::ldexp(digits, -24);
  else
    size = std::ldexp(1024 + digits, exponent - 25);
  return static_cast<float>(half >> 15 != 0 ? -size : size);
}

/// Returns whether the bits are equal, or both values are missing.
bool same(float a, float b) { return support::same_bits(a, b) || (std::isnan(a) && std::isnan(b)); }

std::vector<double> hard_doubles() {
  std::vector<double> values{0.0,
                             1e300,
                             0x1p128,
                             std::nextafter(0x1p128, 0),
                             0x1.ffffffp127,  // halfway from the largest float32 to the next: rounds up
                             std::nextafter(0x1.ffffffp127, 0),
                             as_double(kMax),
                             std::numeric_limits<double>::max(),
                             std::numeric_limits<double>::min(),
                             std::numeric_limits<double>::denorm_min(),
                             std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN(),
                             0x1p-150,  // half of the smallest float32: rounds to zero, which is even
                             std::nextafter(0x1p-150, 1),
                             std::nextafter(0x1p-150, 0),
                             0x1.8p-149,  // halfway from the smallest float32 to the next
                             0x1p-126,
                             std::nextafter(0x1p-126, 0),
                             0x1.fffffcp-127,  // the largest denormal
                             0x1.fffffep-127,  // halfway from there to the smallest normal float32
                             0.1,
                             1.0 / 3};
  std::mt19937_64 random(3);
  const auto draw = [&] { return static_cast<std::uint32_t>(random() % 0x7f800000); };
  for (int i = 0; i < 3000; ++i) {
    const auto bits = i % 3 == 0 ? draw() % 0x01000000 : draw();  // a third of them denormal or nearly so
    const double low = on_the_line(std::bit_cast<float>(bits)),
                 high = on_the_line(std::bit_cast<float>(bits + 1));
    const double middle = low + (high - low) / 2;
    values.insert(values.end(), {low, middle, std::nextafter(middle, 0), std::nextafter(middle, 1e300),
                                 std::bit_cast<double>(random())});
  }
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}

TEST(ConvertRows, DoublesToTheNearestFloat) {
  const std::vector<double> values = hard_doubles();
  std::vector<float> found(values.size());
  host::convert_rows({}, {values.data(), 1, values.size(), RowType::Float64}, 0, 1,
                     {values.size(), values.size()}, found.data());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_TRUE(same(found[i], nearest(values[i])))
        << std::hexfloat << values[i] << " becomes " << found[i] << ", expected " << nearest(values[i]);
}

TEST(ConvertRows, EveryHalf) {
  std::vector<std::uint16_t> values(65536);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i);
  std::vector<float> found(values.size());
  host::convert_rows({}, {values.data(), 1, values.size(), RowType::Float16}, 0, 1,
                     {values.size(), values.size()}, found.data());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_TRUE(same(found[i], value_of(values[i]))) << i << " becomes " << found[i];
}

TEST(ConvertRows, ARangeOfRowsWithValuesBetweenThem) {
  std::vector<double> rows(20 * 7, -1);
  for (std::size_t r = 0; r < 20; ++r)
    for (std::size_t i = 0; i < 5; ++i) rows[r * 7 + i] = static_cast<double>(10 * r + i);
  std::vector<float> found(6 * 5 + 1, -2);
  host::convert_rows({}, {rows.data(), 20, 7, RowType::Float64}, 13, 6, {5, 5}, found.data());
  for (std::size_t r = 0; r < 6; ++r)
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(found[r * 5 + i], static_cast<float>(10 * (13 + r) + i));
  EXPECT_EQ(found.back(), -2) << "more was written than asked for";
}

/// Rows in a type of values, with the float32 rows to which the test rounds them, and with values between
/// them that must not be read.
struct TypedRows {
  std::vector<double> doubles;
  std::vector<std::uint16_t> halves;
  std::vector<float> rounded;  ///< float32 values of the rows, without values between them
  std::size_t count, width, stride;

  TypedRows(RowType type, std::size_t rows, std::size_t features, std::size_t padding)
      : count(rows), width(features), stride(features + padding) {
    std::mt19937_64 random(static_cast<std::uint64_t>(rows));
    static const std::vector<double> hard = hard_doubles();
    if (type == RowType::Float64)
      doubles.assign(count * stride, 1e9);
    else
      halves.assign(count * stride, 0x7bff);
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t i = 0; i < width; ++i) {
        const std::size_t at = r * stride + i;
        if (type == RowType::Float64) {
          const double ordinary = static_cast<double>(random() % 100000) / 20000 - 2.5;
          doubles[at] = random() % 3 == 0 ? hard[random() % hard.size()] : ordinary;
          rounded.push_back(nearest(doubles[at]));
        } else {
          halves[at] = static_cast<std::uint16_t>(random());
          rounded.push_back(value_of(halves[at]));
        }
      }
  }

  RowBlock block(RowType type) const {
    const void* const data =
        type == RowType::Float64 ? static_cast<const void*>(doubles.data()) : halves.data();
    return {data, count, stride, type};
  }
  RowBlock floats() const { return {rounded.data(), count, width}; }
};

constexpr RowType kTypes[] = {RowType::Float64, RowType::Float16};

const char* const kSchedules[] = {"", "encode(u8)", kRichSchedule,
                                  "plan(8); layout(tree, sparse); plan(BATCH); encode(u8)"};

/// Returns thresholds on and beside which numbers are rounded.
Model forest_of_hard_thresholds() {
  Model model = small_forest({.trees = 12, .features = 3, .outputs = 3, .depth = 4});
  const float thresholds[] = {0x1p-149f, -0x1p-149f, 0x1p-126f, kMax, -kMax, 0.1f, -0.5f, 0x1p-24f, 65504.0f};
  std::size_t i = 0;
  for (Tree& tree : model.trees)
    for (Node& node : tree.nodes)
      if (node.kind == NodeKind::Less && ++i % 2 == 0)
        node.threshold = as_double(thresholds[i / 2 % std::size(thresholds)]);
  return model;
}

TEST(ConvertRows, PredictionsAreThoseOfTheRoundedRows) {
  const Model model = forest_of_hard_thresholds();
  for (const char* schedule : kSchedules) {
    const Program program = compiled(model, schedule);
    for (const std::string& target : support::targets_here()) {
      const auto predictor = host_backend(program, {2, target});
      const auto context = (*predictor)->make_context();
      for (const RowType type : kTypes)
        for (const std::size_t padding : {0u, 5u})
          for (const std::size_t count : {0u, 1u, 7u, 64u, 65u, 200u}) {
            SCOPED_TRACE(std::string(schedule) + ", target " + target + ", rows " + std::to_string(count));
            const TypedRows rows(type, count, 3, padding);
            EXPECT_TRUE(answers(**predictor, *context, rows.block(type)) ==
                        answers(**predictor, rows.floats()));
          }
    }
  }
}

TEST(ConvertRows, SettingsOfTheCallerDoNotMatter) {
  const Program program = compiled(forest_of_hard_thresholds(), "encode(u8)");
  const auto predictor = host_backend(program);
  for (const RowType type : kTypes) {
    const TypedRows rows(type, 100, 3, 1);
    const Answers expected = answers(**predictor, rows.floats());
    for (const Setting& setting : kSettings) {
      SCOPED_TRACE(setting.name);
      Answers found;
      under(setting, [&] { found = answers(**predictor, rows.block(type)); });
      EXPECT_TRUE(found == expected);
    }
  }
}

/// The caller's floating-point settings do not affect whether a value counts as a float32. All values here do.
TEST(ConvertRows, SettingsOfTheCallerDoNotMakeValuesInexact) {
  Model model = forest_of_hard_thresholds();
  model.row_type = model.score_type = ScalarType::Float64;
  const auto predictor = host_backend(compiled(model, "encode(u8)"));
  const std::vector<float> floats = {0x1p-149f, -0x1p-149f, 0x1.8p-140f, kMax, kInfinity, 0.1f};
  const std::vector<double> doubles(floats.begin(), floats.end());
  const Answers expected = answers(**predictor, RowBlock{floats.data(), 2, 3});
  for (const Setting& setting : kSettings) {
    SCOPED_TRACE(setting.name);
    Answers found;
    under(setting, [&] { found = answers(**predictor, RowBlock{doubles.data(), 2, 3, RowType::Float64}); });
    EXPECT_TRUE(found == expected);
  }
}

/// Rows are converted 8 MiB at a time, or 4096 at a time if they are longer than 2 KiB.
TEST(ConvertRows, CallsOfSeveralPasses) {
  for (const std::uint32_t features : {3u, 600u}) {
    Model model = forest_of_hard_thresholds();
    model.num_features = features;
    model.feature_names.clear();
    for (Tree& tree : model.trees)
      for (Node& node : tree.nodes)
        if (node.kind == NodeKind::Less)
          node.feature = node.feature * (features - 1) / 2;  // includes the last feature
    const std::size_t in_pass = features == 3 ? (std::size_t{8} << 20) / 12 : 4096;
    const auto predictor =
        host_backend(compiled(model, "plan(8); layout(tree, sparse); plan(BATCH); encode(u8)"));
    const auto context = (*predictor)->make_context();
    for (const RowType type : kTypes)
      for (const std::size_t more : {0u, 1u, 9u}) {
        if (features == 3 && more != 9) continue;  // too many rows for other values of `more`
        SCOPED_TRACE(std::to_string(features) + " features, " + std::to_string(more) +
                     " rows in the second pass");
        const TypedRows rows(type, in_pass + more, features, 2);
        std::vector<float> found(rows.count * 3), expected(rows.count * 3);
        ASSERT_TRUE((*predictor)->predict(*context, rows.block(type), OutputKind::Raw, found.data()).ok());
        ASSERT_TRUE((*predictor)->predict(*context, rows.floats(), OutputKind::Raw, expected.data()).ok());
        EXPECT_EQ(found, expected);
      }
  }
}

/// LightGBM's zero_as_missing when no threshold separates tiny numbers from their neighbours: all of them are
/// missing, and the next number is not. One value in a hundred is present, so that sparse rows are encoded
/// without making them dense.
TEST(ConvertRows, TinyNumbersAreMissingToTheLast) {
  constexpr std::uint32_t kFeatures = 100, kFeature = 7;
  Model model = support::model_of({support::split(kFeature, -1, support::leaf(1), support::leaf(2), true)});
  model.num_features = kFeatures;
  model.row_type = model.score_type = ScalarType::Float64;
  model.trees[0].nodes[0].missing = Missing::Zero;
  const float tiny = static_cast<float>(kTiny), more = std::nextafter(tiny, 1.0f);
  const std::vector<std::pair<float, bool>> values = {
      {0.0f, true},          {-0.0f, true}, {0x1p-149f, true}, {tiny, true},  {-tiny, true},
      {std::nanf(""), true}, {more, false}, {-more, false},    {1.0f, false}, {-0.5f, false}};
  std::vector<float> dense(values.size() * kFeatures, 5), numbers;
  std::vector<std::int64_t> offsets = {0};
  const std::vector<std::int32_t> columns(values.size(), kFeature);
  for (std::size_t row = 0; row < values.size(); ++row) {
    numbers.push_back(dense[row * kFeatures + kFeature] = values[row].first);
    offsets.push_back(static_cast<std::int64_t>(row + 1));
  }
  const RowBlock block{dense.data(), values.size(), kFeatures};
  const CsrRows sparse{values.size(),  offsets.data(), columns.data(),
                       numbers.data(), numbers.size(), Absent::Zero};
  for (const char* const schedule : {"", "encode(u8)", "layout(tree, sparse)"}) {
    const Program program = compiled(model, schedule);
    ASSERT_FALSE(program.zero_missing().empty());
    for (const std::string& target : support::targets_here()) {
      const auto predictor = host_backend(program, {.target = target});
      const auto context = (*predictor)->make_context();
      for (const AnyRows& rows : {AnyRows(block), AnyRows(sparse)}) {
        std::vector<double> scores(values.size());
        ASSERT_TRUE((*predictor)->predict_wide(*context, rows, OutputKind::Raw, scores.data()).ok());
        for (std::size_t row = 0; row < values.size(); ++row)
          EXPECT_EQ(scores[row], model.base[0] + (values[row].second ? 1 : 2))
              << schedule << ", " << target << ", " << std::hexfloat << values[row].first;
      }
    }
  }
}

TEST(ConvertRows, RowsThatAreTooShortAreRefused) {
  const auto predictor = host_backend(compiled(small_forest(), ""));
  const auto context = (*predictor)->make_context();
  const std::vector<double> rows(10);
  float out[3];
  for (const RowType type : kTypes) {
    const auto done =
        (*predictor)->predict(*context, RowBlock{rows.data(), 1, 2, type}, OutputKind::Raw, out);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, ErrorCode::Usage);
  }
}

}  // namespace
}  // namespace forestvm::test::test_convert_rows
