// The first levels of a tree in registers, for walks whose lanes are rows: their steps permute registers where others
// gather nodes. They have as many levels as one table of a target's nodes holds.
#pragma once

#include <bit>
#include <cstdint>

#include <forestvm/core/layout/sparse8.hpp>

namespace forestvm::host {

template <class Lanes>
class TopNodes {
  using Ints = typename Lanes::Ints;
  using Table = typename Lanes::NodeTable;

 public:
  static constexpr std::uint32_t kNodes = Table::kNodes;  ///< The nodes of a table, a power of two.
  /// The number of levels whose nodes are in a table.
  static constexpr std::uint32_t kLevels = std::bit_width(kNodes) - 1;

  /// Numbers nodes level by level, the root 1 and the children of node i 2i and 2i + 1. Both children of a leaf are the
  /// leaf again. Tables are looked up modulo kNodes: one has the levels above number kNodes, one the level from it on.
  explicit TopNodes(const Sparse8Node* tree) {
    float values[2 * kNodes];
    std::uint32_t words[2 * kNodes], at[2 * kNodes];
    values[0] = 0;  // of no node
    words[0] = Sparse8View::kLeafWord;
    at[1] = 0;
    for (std::uint32_t i = 1; i < 2 * kNodes; ++i) {
      const Sparse8Node node = tree[at[i]];
      values[i] = node.value;
      words[i] = node.word;
      if (i >= kNodes) continue;
      at[2 * i] = at[i] + (node.word & Sparse8View::kDistanceMask);
      at[2 * i + 1] = at[2 * i] + static_cast<std::uint32_t>((node.word & kLeaf) == 0);
    }
    above_ = Table(values, words);
    below_ = Table(values + kNodes, words + kNodes);
    positions_ = typename Lanes::WordTable(at + kNodes);
  }

  /// Returns the number of the root in all lanes.
  static Ints root() { return Lanes::all(1); }
  /// Returns the nodes of these numbers in the first kLevels levels.
  FVM_INLINE auto above(Ints number) const { return above_[number]; }
  /// Returns the nodes of these numbers in the level below.
  FVM_INLINE auto below(Ints number) const { return below_[number]; }
  /// Returns the positions of these nodes, counted from the root.
  FVM_INLINE Ints position(Ints number) const { return positions_[number]; }

 private:
  Table above_, below_;
  typename Lanes::WordTable positions_;
};

}  // namespace forestvm::host
