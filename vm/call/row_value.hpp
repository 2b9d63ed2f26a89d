// Values of any row type as float32 and float64 numbers.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>

#include <forestvm/backend.hpp>
#include <forestvm/internal/value_rules.hpp>

namespace forestvm::host {

/// Holds an IEEE 754 binary16.
struct Half {
  std::uint16_t bits;
};

struct Bool {
  std::uint8_t byte;
};

template <class Value>
float to_float(Value value) {
  return static_cast<float>(value);  // rounds to nearest; a value beyond the range becomes ±inf
}

/// Returns the float32 equal to a binary16, which always exists: the exponent moves, and a subnormal is
/// multiplied up.
inline float to_float(Half half) {
  const std::uint32_t sign = std::uint32_t{half.bits & 0x8000u} << 16, rest = half.bits & 0x7fffu;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest < 0x0400) {
    const float size = static_cast<float>(rest) * 0x1p-24f;
    return sign != 0 ? -size : size;
  }
  return std::bit_cast<float>(sign | ((rest << 13) + (std::uint32_t{127 - 15} << 23)));
}

inline float to_float(Bool value) { return value.byte != 0 ? 1.0f : 0.0f; }

template <class Value>
double to_double(Value value) {
  return static_cast<double>(value);  // to nearest
}

inline double to_double(Half half) { return static_cast<double>(to_float(half)); }
inline double to_double(Bool value) { return value.byte != 0 ? 1.0 : 0.0; }

/// True if each value of the type is a float32.
template <class Value>
inline constexpr bool kIsFloat32 =
    !std::is_same_v<Value, double> && !(std::is_integral_v<Value> && sizeof(Value) >= sizeof(float));

/// True if each value of the type is a float64.
template <class Value>
inline constexpr bool kIsFloat64 = !(std::is_integral_v<Value> && sizeof(Value) >= sizeof(double));

/// Returns whether a float64 is equal to the value.
template <class Value>
bool is_exact(Value value) {
  if constexpr (kIsFloat64<Value>) {
    return true;
  } else {
    // Rounding takes the largest integers of the type to a power of two, which the type does not hold.
    const double nearest = to_double(value);
    return nearest < std::ldexp(1.0, std::numeric_limits<Value>::digits) &&
           static_cast<Value>(nearest) == value;
  }
}

/// Returns what walks compare for a value of a feature, which is `special` if that is not null.
template <class Value>
float compared(const ValueRules& rules, std::uint32_t feature, const ValueRules::Special* special,
               Value value) {
  if (special != nullptr) return rules.round(*special, to_double(value));
  if constexpr (!kIsFloat32<Value>)
    if (rules.wide()) return rules.round(feature, to_double(value));
  return to_float(value);
}

template <class Value>
float compared(const ValueRules& rules, std::uint32_t feature, Value value) {
  return compared(rules, feature, rules.special(feature), value);
}

/// Reads value number `i`; `values` needs no alignment.
template <class Value>
Value value_at(const void* values, std::size_t i) {
  Value value;
  std::memcpy(&value, static_cast<const std::byte*>(values) + i * sizeof(Value), sizeof(Value));
  return value;
}

/// Writes what walks compare for up to kRoundedAtOnce values of a feature, `stride` values apart from value number
/// `first` on. The feature is `special` if that is not null.
template <class Value>
void convert_run(const ValueRules& rules, std::uint32_t feature, const ValueRules::Special* special,
                 const void* values, std::size_t first, std::size_t stride, std::size_t count, float* out) {
  const auto value = [&](std::size_t i) { return value_at<Value>(values, first + i * stride); };
  if (special != nullptr) {
    for (std::size_t i = 0; i < count; ++i) out[i] = rules.round(*special, to_double(value(i)));
  } else if (kIsFloat32<Value> || !rules.wide()) {
    for (std::size_t i = 0; i < count; ++i) out[i] = to_float(value(i));
  } else {
    double run[kRoundedAtOnce];
    std::uint32_t features[kRoundedAtOnce];
    for (std::size_t i = 0; i < count; ++i) {
      run[i] = to_double(value(i));
      features[i] = feature;
    }
    rules.round({features, count}, run, out);
  }
}

/// Lists the types of values in the order of RowType.
using ValueTypes = std::tuple<float, double, Half, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                              std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, Bool>;
static_assert(std::tuple_size_v<ValueTypes> == static_cast<std::size_t>(RowType::Bool) + 1);

/// Calls visit(Value()) with a value of the type.
template <std::size_t kFirst = 0, class Visit>
auto with_type(RowType type, const Visit& visit) {
  if constexpr (kFirst + 1 < std::tuple_size_v<ValueTypes>)
    if (static_cast<std::size_t>(type) != kFirst) return with_type<kFirst + 1>(type, visit);
  return visit(std::tuple_element_t<kFirst, ValueTypes>());
}

}  // namespace forestvm::host
