// Exponential functions that have the same bits on every device, for numbers and for vectors of them.
//
// The templates take a number, or a vector of GCC's and Clang's vector extensions. They do the same operations on each
// lane of a vector as on a number, without branches, and are always inlined: each CPU target compiles its own.
#pragma once

#include <bit>
#include <cstdint>

#include <forestvm/core/math.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

inline constexpr double kLog2E = 1.4426950408889634;
inline constexpr double kLn2High = 6.93147180369123816490e-01;  // ln 2 = high + low
inline constexpr double kLn2Low = 1.90821492927058770002e-10;

/// Returns x, or `most` if x is more. NaN stays NaN.
template <class Number, class Scalar>
FVM_INLINE Number at_most(Number x, Scalar most) {
  const Number limit = Number{} + most;
  return x > limit ? limit : x;
}

/// Returns x, or `least` if x is less, or NaN.
template <class Number, class Scalar>
FVM_INLINE Number at_least(Number x, Scalar least) {
  const Number limit = Number{} + least;
  return x >= limit ? x : limit;
}

/// Returns a result, or x if x is NaN.
template <class Number>
FVM_INLINE Number result_or_nan(Number result, Number x) {
  return x == x ? result : x;  // NOLINT(misc-redundant-expression): false for NaN
}

/// The unsigned integers with as many lanes as a float64 number, or a vector of them, has; arithmetic wraps around.
template <class Double>
struct LongsOf;
template <>
struct LongsOf<double> {
  using Type = std::uint64_t;
};

/// A float64 number's nearest whole number, half of the way to the even one, as a number and as an integer.
template <class Double>
struct NearestWhole {
  using Longs = typename LongsOf<Double>::Type;

  /// `x` is less than 2^51 in size.
  FVM_INLINE explicit NearestWhole(Double x) {
    constexpr double kRounder = 6755399441055744.0;  // 2^52 + 2^51: a sum with it has no fraction
    const Double sum = x + kRounder;
    number = sum - kRounder;
    integer = std::bit_cast<Longs>(sum) - std::bit_cast<std::uint64_t>(kRounder);
  }

  Double number;
  Longs integer;
};

/// Returns 2 to the power of exponents from -1022 to 1023.
template <class Double>
FVM_INLINE Double powers_of_two(typename LongsOf<Double>::Type exponents) {
  return std::bit_cast<Double>((exponents + 1023) << 52);
}

/// Returns exp(x) in float64. Rounded to float32 it is within 1 ulp of the correctly rounded result. It uses Cody-Waite
/// reduction and a degree-13 polynomial (truncation error 4e-18). Beyond the limits of float32 it returns a number that
/// float32 rounds to 0 or infinity.
template <class Double>
FVM_INLINE Double exp_for_f32(Double x) {
  const Double cut = at_most(at_least(x, -104.0), 88.8);
  const NearestWhole<Double> n(cut * kLog2E);
  const Double r = (cut - n.number * kLn2High) - n.number * kLn2Low;
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
  Double sum{};
  FVM_UNROLL_ALL
  for (double factor : kInverseFactorials) sum = sum * r + factor;
  const Double result = sum * powers_of_two<Double>(n.integer);
  return result_or_nan(result, x);
}

/// Returns 2^n * exp(high - low) by a degree-14 polynomial. `high` is at most 0.35 in size, `low` tiny, n from -1076 to
/// 1025.
template <class Double>
FVM_INLINE Double scaled_exp(Double high, Double low, typename LongsOf<Double>::Type n) {
  const Double r = high - low;
  constexpr double kInverseFactorials[] = {1.0 / 87178291200.0,
                                           1.0 / 6227020800.0,
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
                                           0.5};
  Double tail{};
  FVM_UNROLL_ALL
  for (double factor : kInverseFactorials) tail = tail * r + factor;
  // 1 + high + rest, with what the two sums lose added back: the rounding of the last sum is nearly all of
  // the error.
  const Double rest = tail * (r * r) - low;
  const Double sum = high + rest;
  const Double total = 1 + sum;
  const Double lost = ((1 - total) + sum) + ((high - sum) + rest);
  const Double result = total + lost;
  // Multiplies in two steps, because the power itself may be out of range. The sum with 4096 is positive, so that a
  // shift without a sign halves it.
  const typename LongsOf<Double>::Type half = ((n + 4096) >> 1) - 2048;
  return result * powers_of_two<Double>(half) * powers_of_two<Double>(n - half);
}

/// Does it for numbers, of which one copy suffices.
FVM_HOST_DEVICE inline double scaled_exp(double high, double low, std::uint64_t n) {
  return scaled_exp<double>(high, low, n);
}

/// Returns exp(x), within 1 ulp of the correctly rounded result. It uses Cody-Waite reduction and the
/// polynomial of scaled_exp. At the limits to which x is cut, the result is 0 and infinity.
template <class Double>
FVM_INLINE Double exp_for_f64(Double x) {
  const Double cut = at_most(at_least(x, -745.14), 709.79);
  const NearestWhole<Double> n(cut * kLog2E);
  const Double high = cut - n.number * kLn2High;  // exact: the constant ends in 32 zero bits
  const Double result = scaled_exp(high, n.number * kLn2Low, n.integer);
  return result_or_nan(result, x);
}

/// Returns exp of a float32, within 1 ulp of the correctly rounded result.
FVM_HOST_DEVICE inline float exp_f32(float x) {
  return static_cast<float>(exp_for_f32(static_cast<double>(x)));
}

/// Returns exp of a float64, within 1 ulp of the correctly rounded result.
FVM_HOST_DEVICE inline double exp_f64(double x) { return exp_for_f64(x); }

FVM_HOST_DEVICE inline float exp_of(float x) { return exp_f32(x); }
FVM_HOST_DEVICE inline double exp_of(double x) { return exp_f64(x); }

/// Returns 2 to the power of x, within 1 ulp of the correctly rounded result. The fraction is exact, and is multiplied
/// by ln 2 in two parts.
FVM_HOST_DEVICE inline double exp2_f64(double x) {
  const double cut = at_most(at_least(x, -1075.5), 1024.0);
  const NearestWhole<double> n(cut);
  const double fraction = cut - n.number;  // in [-0.5, 0.5]
  const double result = scaled_exp(fraction * kLn2High, -(fraction * kLn2Low), n.integer);
  return result_or_nan(result, x);
}
FVM_HOST_DEVICE inline double exp2_of(double x) { return exp2_f64(x); }
FVM_HOST_DEVICE inline float exp2_of(float x) { return static_cast<float>(exp2_f64(static_cast<double>(x))); }

}  // namespace forestvm
