// See nightly.hpp.
#include "support/nightly.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string_view>

namespace forestvm::support {

bool nightly() {
  const char* const value = std::getenv("FORESTVM_NIGHTLY");
  return value != nullptr && std::string_view(value) == "1";
}

std::vector<std::size_t> sampled(std::size_t count, std::size_t most, std::string_view of) {
  std::vector<std::size_t> numbers(nightly() ? count : std::min(count, most));
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  if (numbers.size() == count) return numbers;
  std::seed_seq seed(of.begin(), of.end());
  std::mt19937_64 random(seed);
  for (std::size_t& number : numbers) {
    const std::size_t begin = number * count / most, end = (number + 1) * count / most;
    number = begin + random() % (end - begin);
  }
  return numbers;
}

}  // namespace forestvm::support
