// Exact sums against integers of 128 bits, and their rounding against rounding digit by digit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <forestvm/core/sums.hpp>

#include "vm/host/atomics.hpp"

namespace forestvm::test::test_sums {
namespace {

__extension__ using Wide = unsigned __int128;
__extension__ using Signed = __int128;

Wide value_of(Exact128Sum sum) { return Wide{sum.high} << 64 | sum.low; }
Exact128Sum sum_of(Wide value) {
  return {static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(value >> 64)};
}

/// Returns numbers at whose ends carries and roundings happen, and random ones of any length, of both signs.
std::vector<Wide> hard_numbers() {
  std::vector<Wide> numbers;
  for (unsigned bit = 0; bit < 127; ++bit)
    for (const unsigned lower : {1u, 23u, 24u, 25u, 52u, 53u, 54u, 64u, 70u}) {
      const Wide high = Wide{1} << bit, low = bit < lower ? 0 : Wide{1} << (bit - lower);
      numbers.insert(numbers.end(), {high, high - 1, high + 1, high + low, high + low - 1, high + low + 1});
    }
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) numbers.push_back((Wide{random()} << 64 | random()) >> (1 + random() % 126));
  const std::size_t count = numbers.size();
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(-numbers[i]);
  return numbers;
}

/// Returns the nearest number with `digits` digits, ties to even; the dropped part is compared as a whole.
double nearest(Wide number, unsigned digits) {
  const bool negative = number >> 127 != 0;
  Wide size = negative ? -number : number;
  unsigned exponent = 0;
  while (size >> (digits + exponent) != 0) ++exponent;
  const Wide dropped = exponent == 0 ? 0 : size & ((Wide{1} << exponent) - 1),
             half = (Wide{1} << exponent) / 2;
  size >>= exponent;
  if (exponent != 0 && (dropped > half || (dropped == half && (size & 1) != 0))) ++size;
  const double rounded =
      std::ldexp(static_cast<double>(static_cast<std::uint64_t>(size)), static_cast<int>(exponent));
  return negative ? -rounded : rounded;
}

template <class Score>
constexpr unsigned kDigits = std::numeric_limits<Score>::digits;

template <class Score, class Sum>
void expect_rounded(Sum sum, Wide number) {
  for (const int unit : {0, -20, -90}) {
    const double expected = std::ldexp(nearest(number, kDigits<Score>), unit);
    EXPECT_EQ(static_cast<double>(sum.template rounded<Score>(SumScale(unit))), expected)
        << std::hexfloat << "unit 2^" << unit << ", " << kDigits<Score> << " digits";
  }
}

TEST(Sums, Of64BitsAreRoundedOnce) {
  for (const Wide number : hard_numbers()) {
    const auto count = static_cast<std::int64_t>(static_cast<std::uint64_t>(number));
    const Wide same = static_cast<Wide>(static_cast<Signed>(count));
    const Exact64Sum sum{static_cast<std::uint64_t>(number)};
    expect_rounded<float>(sum, same);
    expect_rounded<double>(sum, same);
  }
}

TEST(Sums, Of128BitsAreRoundedOnce) {
  for (const Wide number : hard_numbers()) {
    expect_rounded<float>(sum_of(number), number);
    expect_rounded<double>(sum_of(number), number);
  }
}

TEST(Sums, Of128BitsCarry) {
  const std::vector<Wide> numbers = hard_numbers();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Wide a = numbers[i], b = numbers[(i * 7919 + 13) % numbers.size()];
    Exact128Sum sum = sum_of(a), shared = sum_of(a);
    sum.add(sum_of(b));
    EXPECT_TRUE(value_of(sum) == a + b);
    shared.add_shared<host::Atomics>(sum_of(b));
    EXPECT_TRUE(value_of(shared) == a + b);
    EXPECT_TRUE(value_of(sum_of(a).negated()) == -a);
  }
}

/// A base score that is no float32 is not rounded before it is added.
TEST(Sums, BasesAreAddedInFloat64) {
  const double base = 0.5 + 0x1p-26;  // rounded to float32: 0.5
  F32Sum narrow{0x1p-1f + 0x1p-24f};
  add_base(narrow, base, {});
  EXPECT_EQ(narrow.value, 1.0f + 0x1p-23f);
  F64Sum wide{1};
  add_base(wide, base, {});
  EXPECT_EQ(wide.value, 1.5 + 0x1p-26);
}

TEST(Sums, CountMultiplesOfTheUnit) {
  for (const double leaf :
       {0.0, 1.0, -1.0, 0x1p-20, -0x1.fffffffffffffp+40, 0x1.8p+70, -0x1.0000000000001p+52}) {
    const Wide whole = static_cast<Wide>(static_cast<Signed>(std::ldexp(leaf, 20)));
    EXPECT_TRUE(value_of(Exact128Sum::of(leaf, SumScale(-20))) == whole) << leaf;
    if (std::abs(leaf) >= 0x1p+43) continue;
    EXPECT_EQ(Exact64Sum::of(leaf, SumScale(-20)).count, static_cast<std::uint64_t>(whole)) << leaf;
  }
}

}  // namespace
}  // namespace forestvm::test::test_sums
