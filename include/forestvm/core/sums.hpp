// The sums that accumulators hold, one type for each way of adding. An exact sum counts a unit 2^e, of which
// every leaf and base score of the program is a multiple, in an integer that no order of additions overflows:
// its bits do not depend on the order. It is rounded once, to the type of the scores. `Atomics` is the
// machine's way to add to a number that other threads add to: fetch_add(number, more) returns the number's
// value before the addition. Leaves are float32 or float64.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <forestvm/core/bytecode.hpp>
#include <forestvm/core/math.hpp>
#include <forestvm/core/platform.hpp>

namespace forestvm {

/// The factors that turn leaves into counts of the unit and sums back into scores.
struct SumScale {
  double per_value = 1;  ///< 2^-e.
  double unit = 1;       ///< 2^e.

  SumScale() = default;
  FVM_HOST_DEVICE explicit SumScale(int exponent)
      : per_value(power_of_two(-exponent)), unit(power_of_two(exponent)) {}
};

/// The exponents that a program's unit may have: power_of_two gives both the unit and its reciprocal.
inline constexpr int kLowestUnit = -1022, kHighestUnit = 1022;

/// A sum of floating-point numbers, rounded after each addition.
template <class T>
struct RoundedSum {
  T value;

  template <class Leaf>
  FVM_INLINE static RoundedSum of(Leaf leaf, const SumScale&) {
    return {static_cast<T>(leaf)};
  }
  FVM_INLINE void add(RoundedSum more) { value += more.value; }
  template <class Atomics>
  FVM_INLINE void add_shared(RoundedSum more) {
    Atomics::fetch_add(value, more.value);
  }
  template <class Score>
  FVM_INLINE Score rounded(const SumScale&) const {
    return static_cast<Score>(value);
  }
};

using F32Sum = RoundedSum<float>;
using F64Sum = RoundedSum<double>;

/// An exact sum in two's complement, as an unsigned word: sums of a damaged program wrap.
struct Exact64Sum {
  std::uint64_t count;

  template <class Leaf>
  FVM_INLINE static Exact64Sum of(Leaf leaf, const SumScale& scale) {
    const double units = static_cast<double>(leaf) * scale.per_value;
    const bool fits = units > -0x1p63 && units < 0x1p63;  // False only in a damaged program.
    return {static_cast<std::uint64_t>(static_cast<std::int64_t>(fits ? units : 0.0))};
  }
  FVM_INLINE void add(Exact64Sum more) { count += more.count; }
  template <class Atomics>
  FVM_INLINE void add_shared(Exact64Sum more) {
    Atomics::fetch_add(count, more.count);
  }
  /// Returns the sum as a score, rounded once. Multiplying by the unit rounds nothing: a sum is a multiple of
  /// the score type's lowest bit.
  template <class Score>
  FVM_INLINE Score rounded(const SumScale& scale) const {
    const auto nearest = static_cast<Score>(static_cast<std::int64_t>(count));
    return static_cast<Score>(static_cast<double>(nearest) * scale.unit);
  }
};

struct Exact128Sum {
  std::uint64_t low;
  std::uint64_t high;

  template <class Leaf>
  FVM_INLINE static Exact128Sum of(Leaf leaf, const SumScale& scale) {
    const double units = static_cast<double>(leaf) * scale.per_value;
    const auto bits = std::bit_cast<std::uint64_t>(units);
    const std::uint64_t mantissa = (bits & ((std::uint64_t{1} << 52) - 1)) | std::uint64_t{1} << 52;
    const int shift = static_cast<int>(bits >> 52 & 2047) - 1075;
    Exact128Sum sum{0, 0};
    if (shift >= 75 || shift <= -53) return sum;  // Zero, or a leaf that no sound program has.
    if (shift <= 0) {
      sum.low = mantissa >> -shift;
    } else if (shift < 64) {
      sum.low = mantissa << shift;
      sum.high = mantissa >> (64 - shift);
    } else {
      sum.high = mantissa << (shift - 64);
    }
    return (bits >> 63) != 0 ? sum.negated() : sum;
  }
  FVM_INLINE Exact128Sum negated() const { return {~low + 1, ~high + (low == 0 ? 1u : 0u)}; }
  FVM_INLINE void add(Exact128Sum more) {
    low += more.low;
    high += more.high + (low < more.low ? 1u : 0u);
  }
  /// Adds the two words one after the other. Each addition passes on its own carry, and the carries of all of
  /// them together are right.
  template <class Atomics>
  FVM_INLINE void add_shared(Exact128Sum more) {
    const std::uint64_t before = Atomics::fetch_add(low, more.low);
    const std::uint64_t carry = before + more.low < before ? 1u : 0u;
    Atomics::fetch_add(high, more.high + carry);
  }
  template <class Score>
  FVM_INLINE Score rounded(const SumScale& scale) const {
    const bool negative = (high >> 63) != 0;
    const Exact128Sum size = negative ? negated() : *this;
    // Takes the highest 64 bits, and sets the lowest of them if any bit below is set: that is enough to round
    // correctly.
    std::uint64_t top = size.low;
    double unit = scale.unit;
    if (size.high != 0) {
      const int zeros = __builtin_clzll(size.high);
      top = zeros == 0 ? size.high : (size.high << zeros | size.low >> (64 - zeros));
      if ((size.low << zeros) != 0) top |= 1;
      unit *= power_of_two(64 - zeros);
    }
    const auto magnitude = static_cast<Score>(static_cast<double>(static_cast<Score>(top)) * unit);
    return negative ? -magnitude : magnitude;
  }
};

/// Returns whether an accumulator has an element for each tree, and not a sum for each output.
FVM_HOST_DEVICE constexpr bool is_per_tree(AccumulatorKind kind) {
  return kind == AccumulatorKind::PerTree || kind == AccumulatorKind::PerTree64;
}

/// Returns the bytes of an accumulator's element.
FVM_HOST_DEVICE constexpr std::size_t element_size(AccumulatorKind kind) {
  switch (kind) {
#define FVM_ACCUMULATOR_KIND(number, Name, text, Element, meaning) \
  case AccumulatorKind::Name:                                      \
    return sizeof(Element);
#include <forestvm/core/accumulator_kinds.def>
  }
  return 0;
}

/// Adds a base score to a sum. A base score may be no float32, so it is added to a float32 sum in float64, and the
/// result is rounded once.
template <class Sum>
FVM_INLINE void add_base(Sum& sum, double base, const SumScale& scale) {
  if constexpr (std::is_same_v<Sum, F32Sum>)
    sum.value = static_cast<float>(static_cast<double>(sum.value) + base);
  else
    sum.add(Sum::of(base, scale));
}

}  // namespace forestvm
