// Sums of float32 values without any rounding, rounded once at the end, as the reproducible contract
// promises; computed in another way than in the VM, as a fixed-point number wide enough for every float32, in
// 64-bit words.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace forestvm::support {

class ExactSum {
 public:
  void add(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const unsigned exponent = bits >> 23 & 255;
    std::uint64_t mantissa = bits & 0x7fffff;
    if (exponent != 0) mantissa |= 0x800000;
    const unsigned shift = exponent == 0 ? 0 : exponent - 1;  // counted in units of 2^-149
    Words words{};
    words[shift / 64] = mantissa << shift % 64;
    if (shift % 64 != 0) words[shift / 64 + 1] = mantissa >> (64 - shift % 64);
    if ((bits >> 31) != 0) negate(words);
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint64_t before = words_[i], partial = before + words[i];
      words_[i] = partial + carry;
      carry = (partial < before ? 1u : 0u) + (words_[i] < partial ? 1u : 0u);
    }
  }

  /// Rounds to nearest, ties to even.
  float rounded() const {
    Words size = words_;
    const bool negative = (size.back() >> 63) != 0;
    if (negative) negate(size);
    int top = static_cast<int>(64 * size.size()) - 1;
    while (top >= 0 && !bit(size, top)) --top;
    if (top < 0) return 0.0f;
    const int lowest = top > 23 ? top - 23 : 0;  // the lowest of the 24 bits that a float32 keeps
    std::uint64_t kept = 0;
    for (int i = top; i >= lowest; --i) kept = kept << 1 | bit(size, i);
    bool below_half = false;
    for (int i = 0; i < lowest - 1; ++i) below_half = below_half || bit(size, i);
    const bool half = lowest > 0 && bit(size, lowest - 1);
    if (half && (below_half || (kept & 1) != 0)) ++kept;
    const auto value = static_cast<float>(std::ldexp(static_cast<double>(kept), lowest - 149));
    return negative ? -value : value;
  }

 private:
  using Words = std::array<std::uint64_t, 6>;

  static bool bit(const Words& words, int i) {
    return (words[static_cast<std::size_t>(i) / 64] >> (i % 64) & 1) != 0;
  }
  static void negate(Words& words) {
    bool carry = true;
    for (std::uint64_t& word : words) {
      word = ~word + (carry ? 1u : 0u);
      carry = carry && word == 0;
    }
  }

  Words words_{};
};

}  // namespace forestvm::support
