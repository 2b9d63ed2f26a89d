// Ranks of values, one at a time, without branches: the search that every CPU can run. Its comments describe the
// functions of other searches too.
#pragma once

#include <forestvm/core/round_values.hpp>

#include "vm/host/encode_rows.hpp"

namespace forestvm::host {

struct ScalarSearch {
  /// Takes the last `bits` steps of a search. `rank` is the result of the steps before. Returns the rank.
  FVM_INLINE static std::uint32_t rank(const FeatureSearch& search, float x, std::uint32_t rank,
                                       unsigned bits) {
    for (std::uint32_t step = (std::uint32_t{1} << bits) / 2; step != 0; step /= 2)
      rank += x >= search.thresholds[rank + step - 1] ? step : 0;
    return rank;
  }

  /// Writes the codes of up to 64 rows of a block in all columns of a feature. `codes` points to the first
  /// row's code in column 0.
  FVM_INLINE static void encode(const FeatureSearch& search, const float* rows, std::size_t stride,
                                unsigned count, std::uint8_t* codes) {
    encode_few(search, rows + search.feature, stride, count, codes);
  }

  /// Writes the codes of up to 64 values, which are `stride` apart, in all columns of a feature, as encode does. If
  /// `source` is a RoundedUp, it has the float64 values from which these were rounded up.
  template <class Source = AsTheyAre>
  FVM_INLINE static void encode_few(const FeatureSearch& search, const float* values, std::size_t stride,
                                    unsigned count, std::uint8_t* codes, const Source& source = {}) {
    std::uint8_t* const to = codes + std::size_t{search.first_column} * kCodeRows;
    for (unsigned r = 0; r < count; ++r) {
      const float x = values[r * stride];
      const std::uint32_t found = rank(search, x, 0, search.bits);
      write_code(search, settled_rank(source, search.feature, search.thresholds, r, x, found), x != x,
                 to + r);
    }
  }

  /// Writes the codes of up to 64 values that lie one after the other.
  template <class Source = AsTheyAre>
  FVM_INLINE static void encode_transposed(const FeatureSearch& search, const float* values, unsigned count,
                                           std::uint8_t* codes, const Source& source = {}) {
    encode_few(search, values, 1, count, codes, source);
  }

  /// Writes the codes of a block's 64 values in all columns of a feature.
  FVM_INLINE static void encode_block(const FeatureSearch& search, const float* values, std::uint8_t* codes) {
    encode_transposed(search, values, kCodeRows, codes);
  }

  /// Rounds up to 64 values, which need no alignment, up to float32.
  FVM_INLINE static void round_up(const double* values, unsigned count, float* to) {
    for (unsigned i = 0; i < count; ++i) {
      double x;
      __builtin_memcpy(&x, reinterpret_cast<const char*>(values) + i * sizeof x, sizeof x);
      const auto nearest = static_cast<float>(x);
      const std::uint32_t below = static_cast<double>(nearest) < x ? 1 : 0;
      const auto bits = __builtin_bit_cast(std::uint32_t, nearest);
      // Bits of negative numbers descend as the numbers ascend.
      to[i] = __builtin_bit_cast(float, bits + (1 - 2 * (bits >> 31)) * below);
    }
  }

  static constexpr bool kPicks = false;  ///< True in searches that pick values of float64 rows in vectors.

  /// Does what a RoundFunction does.
  FVM_INLINE static std::uint64_t round_down(const RoundTask& task) { return forestvm::round_down(task); }

  /// Copies up to 64 values, which need no alignment, as float32. Values without a bit in `present` become NaN.
  template <class Value>
  FVM_INLINE static void load_values(const Value* values, unsigned count, std::uint64_t present, float* to) {
    for (unsigned r = 0; r < count; ++r) to[r] = value_at(values, r, present);
  }

  /// Returns value number `r` as float32; NaN if it has no bit in `present`.
  template <class Value>
  FVM_INLINE static float value_at(const Value* values, unsigned r, std::uint64_t present) {
    if ((present >> r & 1) == 0) return __builtin_nanf("");
    Value value;
    __builtin_memcpy(&value, reinterpret_cast<const char*>(values) + r * sizeof value, sizeof value);
    return static_cast<float>(value);
  }
};

}  // namespace forestvm::host
