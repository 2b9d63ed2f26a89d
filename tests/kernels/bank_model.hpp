// The banks of a GPU's shared memory: 32 banks of 4 bytes; word w is in bank w mod 32. In: the words that the
// lanes of a warp read or write at once. Out: the number of wavefronts that this takes. Lanes that access the
// same word share a wavefront; other words of the same bank wait. A load of several words per lane handles
// only as many lanes at a time as the banks have words for.
// Source: CUDA C++ Programming Guide, "Shared Memory".
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace forestvm::support {

class BankModel {
 public:
  static constexpr std::uint32_t kBanks = 32;

  /// Returns the wavefronts of an access. `words` are the first words of the lanes that take part, each of
  /// which takes `width` words.
  static std::uint32_t wavefronts(std::span<const std::uint32_t> words, std::uint32_t width = 1) {
    const std::size_t at_once = kBanks / width;
    std::uint32_t sum = 0;
    for (std::size_t first = 0; first < words.size(); first += at_once)
      sum += fullest(words.subspan(first, std::min(at_once, words.size() - first)), width);
    return sum;
  }

  /// Counts an access by a warp.
  void add(std::span<const std::uint32_t> words, std::uint32_t width = 1) {
    const std::uint32_t taken = wavefronts(words, width);
    ++accesses_;
    wavefronts_ += taken;
    most_ = std::max(most_, taken);
  }

  std::uint64_t accesses() const { return accesses_; }
  std::uint32_t most() const { return most_; }
  double mean() const {
    return accesses_ == 0 ? 0 : static_cast<double>(wavefronts_) / static_cast<double>(accesses_);
  }

 private:
  static std::uint32_t fullest(std::span<const std::uint32_t> words, std::uint32_t width) {
    std::array<std::set<std::uint32_t>, kBanks> banks;
    std::size_t most = 0;
    for (const std::uint32_t first : words)
      for (std::uint32_t word = first; word < first + width; ++word) {
        banks[word % kBanks].insert(word);
        most = std::max(most, banks[word % kBanks].size());
      }
    return static_cast<std::uint32_t>(most);
  }

  std::uint64_t accesses_ = 0, wavefronts_ = 0;
  std::uint32_t most_ = 0;
};

}  // namespace forestvm::support
