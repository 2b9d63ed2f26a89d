// The order in which rows are compared with kept ones by sets (leaf_sets.hpp): trees in chunks, whose sets fit a cache,
// and the numbers of the sets of each row's leaves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vm/host/leaf_codes.hpp"
#include "vm/host/leaf_sets.hpp"

namespace forestvm::host {

/// Trees in chunks. The sets of the leaves of a chunk are numbered from 1; number 0 is the empty set.
struct SetPlan {
  /// Sets whose numbers have 16 bits.
  static constexpr std::uint32_t kMostSets = 65'536;
  /// The most rows that are compared with a tile's sets before the next tile, and the most bytes of the numbers of
  /// their sets.
  static constexpr std::size_t kMostRows = 4096, kNumberBytes = std::size_t{32} << 20;
  /// The most sets of a chunk of trees, unless a tree has more. With 768 KB they stay in the second-level cache, in
  /// which rows read them in no order.
  static constexpr std::uint32_t kChunkSets = 12'288;

  struct Chunk {
    std::uint32_t begin = 0, end = 0;  ///< The chunk's trees.
    std::uint32_t sets = 1;
    std::size_t numbers_before = 0;  ///< Numbers that a row has in the chunks before.

    /// Returns the numbers that a row has: one for each tree, and 0 up to the next multiple of kSetsAtOnce.
    std::size_t numbers() const {
      return (std::size_t{end} - begin + kSetsAtOnce - 1) / kSetsAtOnce * kSetsAtOnce;
    }
  };

  std::vector<Chunk> chunks;
  std::vector<std::uint32_t> first_sets;  ///< The number of the set of each tree's leaf with code 0.
  std::size_t row_numbers = 0;            ///< Numbers that a row has in all chunks.
  /// The most rows whose numbers are kept at once; 0 if a row has too many. The numbers of a chunk lie row by row,
  /// because rows are added up chunk by chunk: what is read one after the other is fetched before it is needed.
  std::size_t rows_at_once = 0;

  /// Plans for `rows` rows, at least one, and trees of fewer than kMostSets leaves.
  template <class LeavesOf>
  SetPlan(std::size_t rows, std::size_t trees, const LeavesOf& leaves_of) {
    Chunk chunk;
    const auto finish = [&] {
      chunks.push_back(chunk);
      row_numbers += chunk.numbers();
      chunk = {chunk.end, chunk.end, 1, row_numbers};
    };
    for (std::size_t t = 0; t < trees; ++t) {
      if (chunk.end != chunk.begin && chunk.sets + leaves_of(t) > kChunkSets) finish();
      first_sets.push_back(chunk.sets);
      chunk.sets += leaves_of(t);
      ++chunk.end;
    }
    finish();
    const std::size_t most = std::min(kMostRows, kNumberBytes / (row_numbers * sizeof(std::uint16_t)));
    if (most == 0) return;
    const std::size_t parts = (rows + most - 1) / most;
    rows_at_once = (rows + parts - 1) / parts;
  }

  /// Returns where a row's numbers in a chunk begin among those of all rows that are kept at once.
  std::size_t place(const Chunk& chunk, std::size_t row) const {
    return chunk.numbers_before * rows_at_once + row * chunk.numbers();
  }

  /// Returns the number of the set of a tree's leaf with this code.
  std::uint16_t number_of(std::size_t tree, std::uint32_t code) const {
    return static_cast<std::uint16_t>(code == kNoCode ? 0 : first_sets[tree] + code);
  }
};

/// The numbers of sets by tree and leaf number, so that a look-up reads one table for all trees.
class SetNumbers {
 public:
  SetNumbers(const SetPlan& plan, std::span<const LeafCodes> codes) : plan_(plan), codes_(codes) {
    trees_.reserve(codes.size());
    for (std::size_t t = 0; t < codes.size(); ++t) {
      const std::span<const std::uint32_t> small = codes[t].small();
      trees_.push_back({numbers_.size(), static_cast<std::uint32_t>(small.size())});
      for (const std::uint32_t code : small) numbers_.push_back(plan.number_of(t, code));
    }
  }

  std::uint16_t find(std::size_t tree, std::int32_t leaf) const {
    const Tree& mine = trees_[tree];
    const auto at = static_cast<std::uint32_t>(leaf);
    return at < mine.small ? numbers_[mine.first + at] : plan_.number_of(tree, codes_[tree].find(leaf));
  }

 private:
  struct Tree {
    std::size_t first;    ///< Where the numbers of the tree's leaves begin.
    std::uint32_t small;  ///< Leaf numbers below it have a number here.
  };

  const SetPlan& plan_;
  std::span<const LeafCodes> codes_;
  std::vector<Tree> trees_;
  std::vector<std::uint16_t> numbers_;
};

}  // namespace forestvm::host
