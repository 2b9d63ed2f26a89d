// The values that WideFeature::categories may have: which category a number of a row names where a model compares in
// float64.
#pragma once

#include <cmath>
#include <cstdint>

namespace forestvm {

enum class WideCategories : std::uint8_t {
  None = 0,        ///< The feature has no categories.
  Parts = 1,       ///< Whole parts are categories, so numbers between -1 and 0 round up.
  Whole = 2,       ///< Numbers that are not whole are missing.
  Byte = 3,        ///< A number becomes byte_of(it); numbers below 0 are missing.
  SignedByte = 4,  ///< A number becomes byte_of(it).
  Integers = 5,    ///< A number that is no is_int32() becomes infinity. The feature need not have categories.
};
inline constexpr std::uint8_t kWideCategories = 6;

/// Returns whether a number is a whole one of 32 bits.
inline bool is_int32(double x) { return x >= -0x1p31 && x < 0x1p31 && x == std::trunc(x); }

/// Returns the whole part of a number modulo 256, as C converts it to a byte on x86: 0 for NaN and for numbers beyond
/// the range of int32.
inline double byte_of(double x) {
  const bool inside = x > -0x1p31 - 1 && x < 0x1p31;
  return inside ? static_cast<double>(static_cast<std::int64_t>(x) & 255) : 0;
}

}  // namespace forestvm
