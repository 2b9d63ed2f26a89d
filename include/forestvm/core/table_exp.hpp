// CatBoost's exponential function, the same bits on every device: see table_exp.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include <forestvm/core/exp.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

/// Returns the nearest product of two numbers in [1, 2) whose product is below 2. All are counted in units of 2^-63.
FVM_HOST_DEVICE constexpr std::uint64_t fixed_product(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kLow = 0xffffffff;
  const std::uint64_t high_low = (a >> 32) * (b & kLow), low_high = (a & kLow) * (b >> 32);
  const std::uint64_t low_low = (a & kLow) * (b & kLow);
  const std::uint64_t middle = (low_low >> 32) + (high_low & kLow) + (low_high & kLow);
  const std::uint64_t high = (a >> 32) * (b >> 32) + (high_low >> 32) + (low_high >> 32) + (middle >> 32);
  return (high << 1) + ((middle >> 31 & 1) + (middle >> 30 & 1));
}

/// Returns 2^(index / 2048), rounded to the nearest float64. The index is below 2048; each of its bits is a factor.
FVM_HOST_DEVICE constexpr double root_power(std::uint32_t index) {
  constexpr std::uint64_t kFactors[] = {
      0x800b179c82028fd1,  // 2^(1 / 2048)
      0x8016302f17467628,  // 2^(2 / 2048)
      0x802c6436d0e04f51,  // 2^(4 / 2048)
      0x8058d7d2d5e5f6b1,  // 2^(8 / 2048)
      0x80b1ed4fd999ab6c,  // 2^(16 / 2048)
      0x8164d1f3bc030773,  // 2^(32 / 2048)
      0x82cd8698ac2ba1d7,  // 2^(64 / 2048)
      0x85aac367cc487b15,  // 2^(128 / 2048)
      0x8b95c1e3ea8bd6e7,  // 2^(256 / 2048)
      0x9837f0518db8a96f,  // 2^(512 / 2048)
      0xb504f333f9de6484,  // 2^(1024 / 2048)
  };
  std::uint64_t product = std::uint64_t{1} << 63;
  for (unsigned bit = 0; bit < 11; ++bit)
    if ((index >> bit & 1) != 0) product = fixed_product(product, kFactors[bit]);
  const std::uint64_t rounded = (product + 1024) >> 11;  // in units of 2^-52
  return std::bit_cast<double>((std::uint64_t{1023} << 52) + (rounded - (std::uint64_t{1} << 52)));
}

/// Computes the parts of table_exp for a number or a vector of numbers: the nearest whole number of units of
/// ln 2 / 2048, and a polynomial of degree 3 for the rest.
template <class Double>
struct TableExpTerms {
  FVM_INLINE explicit TableExpTerms(Double x) : whole(x * (2048 / 0.6931471805599453)) {
    constexpr double kUnitsPerRoot = 0.6931471805599453 / 2048;
    const Double rest = whole.number * kUnitsPerRoot - x;
    factor = (3.0000000027955394 - rest) * (rest * rest) * 0.16666666685227835064 - rest + 1.0;
  }

  /// Returns exp(x). `root` is root_power of the last 11 bits of the whole number.
  FVM_INLINE Double result(Double x, Double root) const {
    using Longs = typename LongsOf<Double>::Type;
    const Double result =
        factor * std::bit_cast<Double>(std::bit_cast<Longs>(root) + (whole.integer >> 11 << 52));
    const Double zero{}, infinity = zero + std::numeric_limits<double>::infinity();
    const Double above = x <= -708.39641853226408 ? zero : result;
    return result_or_nan(x >= 709.78271289338397 ? infinity : above, x);
  }

  NearestWhole<Double> whole;
  Double factor;
};

/// Returns exp(x) with the bits of CatBoost's function on x86: 2^(n / 2048) for the nearest whole number n, times a
/// polynomial for the rest of x. It is off by up to 2 |x| + 3 units in the last place, and 0 below -708.
FVM_HOST_DEVICE inline double table_exp(double x) {
  const TableExpTerms<double> terms(x);
  return terms.result(x, root_power(static_cast<std::uint32_t>(terms.whole.integer) & 2047));
}

}  // namespace forestvm
