// Small codes for the numbers of leaves: see forestvm/proximity.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace forestvm::host {

inline constexpr std::uint32_t kNoCode = 0xffff'ffff;  ///< The code of a leaf that no kept row has.

/// The codes of a tree's leaf numbers. Small numbers, which most trees' are, have a table. Others have a hash table,
/// which takes memory for the leaves that rows reached, however large their numbers are.
class LeafCodes {
 public:
  /// Returns the code of a leaf number; kNoCode if it has none.
  std::uint32_t find(std::int32_t number) const {
    if (static_cast<std::uint32_t>(number) < small_.size()) return small_[static_cast<std::uint32_t>(number)];
    return slots_.empty() ? kNoCode : slots_[slot_of(number)].code;
  }

  /// Returns the codes of the smallest numbers; kNoCode for those that have none. Larger numbers are found by find().
  std::span<const std::uint32_t> small() const { return small_; }

  /// Returns the number of codes.
  std::uint32_t size() const { return count_; }

  /// Writes the codes of `count` leaf numbers, `stride` apart, to `to`. Numbers without one get the next.
  void find_or_add(const std::int32_t* numbers, std::size_t stride, std::size_t count, std::uint32_t* to) {
    // Nearly all numbers have a code in the table. A code found is below kNoCode, so that the largest tells of others.
    const std::uint32_t* const table = small_.data();
    const auto size = static_cast<std::uint32_t>(small_.size());
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = static_cast<std::uint32_t>(numbers[i * stride]);
      to[i] = at < size ? table[at] : kNoCode;
      largest = std::max(largest, to[i]);
    }
    if (largest == kNoCode)
      for (std::size_t i = 0; i < count; ++i) to[i] = find_or_add(numbers[i * stride]);
  }

  /// Returns the code of a leaf number. Numbers without one get the next.
  std::uint32_t find_or_add(std::int32_t number) {
    if (const auto at = static_cast<std::uint32_t>(number); at < kSmall) {
      if (at >= small_.size()) small_.resize(at + std::size_t{1}, kNoCode);
      if (small_[at] == kNoCode) small_[at] = count_++;
      return small_[at];
    }
    if (slots_.size() < 2 * (std::size_t{count_} + 1)) grow();
    Slot& slot = slots_[slot_of(number)];
    if (slot.code == kNoCode) slot = {number, count_++};
    return slot.code;
  }

 private:
  struct Slot {
    std::int32_t number = 0;
    std::uint32_t code = kNoCode;
  };

  /// Returns the slot of a number, or the empty one in which it belongs.
  std::size_t slot_of(std::int32_t number) const {
    const std::uint64_t hash = static_cast<std::uint32_t>(number) * std::uint64_t{0x9e37'79b9'7f4a'7c15};
    std::size_t at = hash >> shift_;
    while (slots_[at].code != kNoCode && slots_[at].number != number) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  void grow() {
    --shift_;
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(std::size_t{1} << (64 - shift_)));
    for (const Slot& slot : old)
      if (slot.code != kNoCode) slots_[slot_of(slot.number)] = slot;
  }

  static constexpr std::uint32_t kSmall = 8192;

  std::vector<std::uint32_t> small_;  ///< Codes of the numbers below kSmall, as far as they were met.
  std::vector<Slot> slots_;           ///< A power of two of them, at most half of them used.
  unsigned shift_ = 62;  ///< The bits of a hash below those that say where the search for it begins.
  std::uint32_t count_ = 0;
};

}  // namespace forestvm::host
