// Random choices that are the same on every platform for the same seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace forestvm::test {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}

  std::uint64_t bits() { return bits_(); }
  /// Returns 0 … count - 1.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(bits_() % count); }
  std::size_t from_to(std::size_t low, std::size_t high) { return low + below(high - low + 1); }
  bool percent(unsigned chance) { return below(100) < chance; }
  /// Returns a number in [0, 1).
  double real() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }

  template <class T>
  const T& pick(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace forestvm::test
