// The tests in the first eight levels of a group's trees as vectors of bytes, for calls of a few rows with trees in the
// lanes. One lookup of a row's codes and one compare decide the tests in the first four levels of four trees. The
// outcomes are bits, from which a walk finds its way through these levels without any load. The next four levels lie in
// blocks, one for each slot of the fifth level, and are decided in the same way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/forest_data.hpp>
#include <forestvm/core/layout/sparse4.hpp>

namespace forestvm::host {

/// Slots are numbered as in a complete binary tree: slot 1 is the root, and slots 2i and 2i + 1 are the children of
/// slot i. Below a leaf all slots have a test at which every row goes left.
class ByteTests {
 public:
  /// The levels that are decided by one vector, and their slots. Slot 0 has no test.
  static constexpr unsigned kHalf = 4, kSlots = 1u << kHalf;
  static constexpr unsigned kLevels = 2 * kHalf;
  static constexpr unsigned kFour = 4;  ///< Trees whose first levels lie together.
  /// The trees that are walked together. The tests of as many copies of the last tree follow those of the trees.
  static constexpr unsigned kTogether = 64;
  static constexpr std::size_t kMostColumns = 256;  ///< Columns have a byte.

  /// The first levels of four trees.
  struct High {
    alignas(64) std::array<std::uint8_t, std::size_t{kFour} * kSlots> columns;
    std::array<std::uint8_t, std::size_t{kFour} * kSlots>
        codes;  ///< A row goes right if its code is greater.
  };
  /// The levels below a slot of the fifth level. If only two of them have tests, in slots 1 to 3, the bytes of the
  /// other slots have the outputs of the four leaves below: see leaf_place().
  struct Low {
    alignas(32) std::array<std::uint8_t, kSlots> columns;
    std::array<std::uint8_t, kSlots> codes;
  };
  /// Returns the place of a leaf in a block, in floats: 1, 2, 3 or 5.
  static constexpr std::uint32_t leaf_place(std::uint32_t leaf) { return leaf + 1 + (leaf == 3 ? 1 : 0); }

  /// See byte_tests_for. Columns are at most kMostColumns.
  static std::unique_ptr<const ByteTests> make(const GroupData& group, std::uint32_t tree_count, bool wide);

  /// Returns the first levels of four trees. The number of the first one is a multiple of 4.
  const High* high(std::uint32_t tree) const { return high_.data() + tree / kFour; }
  /// Returns the blocks of a tree.
  const Low* low(std::uint32_t tree) const { return low_.data() + std::size_t{tree} * kSlots; }

  /// Returns whether no tree has a split below the eight levels.
  bool walks_end() const { return walks_end_; }
  /// Returns whether walks end, and lead to the outputs of float32 leaves.
  bool has_leaves() const { return has_leaves_; }
  /// Returns the number of the eight levels, at most kMostSpareLevels, that no tree has, if there are leaves; otherwise
  /// 0.
  unsigned spare_levels() const { return spare_levels_; }
  static constexpr unsigned kMostSpareLevels = 2;
  static constexpr unsigned kLeavesOfBlock = kSlots >> kMostSpareLevels;
  /// Returns whether the outputs of leaves are in the blocks.
  bool has_leaves_in_blocks() const { return spare_levels_ == kMostSpareLevels; }
  /// Returns the outputs of a tree's leaves, by the slots of the level below its deepest splits; in blocks, if they are
  /// there.
  const float* leaves(std::uint32_t tree) const {
    return has_leaves_in_blocks() ? reinterpret_cast<const float*>(low(tree))
                                  : leaves_.data() + (std::size_t{tree} << (kLevels - spare_levels_));
  }
  /// Returns where walks through a tree end, by the slots of the ninth level, if there are no leaves: the distance of
  /// the node from the root or, if walks end, of the leaf from the tree's first leaf.
  const std::uint16_t* ends(std::uint32_t tree) const {
    return ends_.data() + (std::size_t{tree} << kLevels);
  }
  /// Returns where each tree begins from `tree` on: the index of its root or, if walks end, of its first leaf.
  const std::uint32_t* begins(std::uint32_t tree) const { return begins_.data() + tree; }

 private:
  ByteTests() = default;
  void add(const GroupData& group, std::uint32_t tree, std::uint32_t to);

  std::vector<High> high_{};
  std::vector<Low> low_{};
  std::vector<float> leaves_{};
  std::vector<std::uint16_t> ends_{};
  std::vector<std::uint32_t> begins_{};
  unsigned spare_levels_ = 0;
  bool walks_end_ = true, has_leaves_ = false;
};

using MakeByteTests = std::unique_ptr<const ByteTests>(const GroupData& group, std::uint32_t tree_count,
                                                       std::size_t columns, bool wide);

/// Makes the tests of the first `tree_count` trees of a group of the layout sparse4 for the walks of a CPU target.
/// Returns null if it decides none as bytes, or not of so many columns of codes, and if they would take too much
/// memory. `wide` says whether sums are of float64 leaves.
template <class Target>
std::unique_ptr<const ByteTests> byte_tests_for(const GroupData& group, std::uint32_t tree_count,
                                                std::size_t columns, bool wide) {
  if constexpr (requires { Target::Lanes::kByteTestColumns; })
    if (columns <= Target::Lanes::kByteTestColumns) return ByteTests::make(group, tree_count, wide);
  return nullptr;
}

}  // namespace forestvm::host
