// The offsets of the elements of an accumulator of per-tree values on the host: what each tree's leaf adds to a row.
// Rows lie in blocks. In a block the values of one tree for all of its rows follow each other, so that walkers, which
// take rows together, write whole cache lines, and sums of many rows are added in vectors. In a call of few rows a
// block has room for these rows only. Calls for the outputs of trees keep the leaves of some trees at a time: then
// there is room for these.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <forestvm/core/encoder.hpp>
#include <forestvm/core/ranges.hpp>

namespace forestvm::host {

struct LeafOffsets {
  std::size_t trees;     ///< Number of trees for which there is room.
  std::uint32_t stride;  ///< Distance of two trees' values for a row.
  std::uint32_t first;   ///< The first of the trees.

  LeafOffsets(std::size_t tree_count, std::uint32_t rows, std::uint32_t first_tree = 0)
      : trees(tree_count), stride(stride_for(rows)), first(first_tree) {}

  /// Returns the offset of the value of a tree from `first` on.
  std::size_t at(std::uint32_t row, std::uint32_t tree) const {
    return std::size_t{row / kCodeRows} * kCodeRows * trees + std::size_t{tree - first} * stride +
           row % kCodeRows;
  }

  /// Returns the number of rows for which there must be memory in a pass of `rows` rows.
  static std::size_t rows_with_room(std::uint32_t rows) {
    if (rows <= kCodeRows) return stride_for(rows);
    return (std::size_t{rows} + kCodeRows - 1) / kCodeRows * kCodeRows;
  }

  /// Returns the most rows, at most `rows`, that need no more room than there are rows.
  static std::size_t whole(std::size_t rows) {
    if (rows >= kCodeRows / 2) return rows < kCodeRows ? kCodeRows / 2 : rows / kCodeRows * kCodeRows;
    return std::min<std::size_t>(rows, kFewRows);
  }

  /// Calls visit(part) for the parts of `rows` that lie in one block, at most `most` rows in each.
  template <class Visit>
  static void for_parts(const Range& rows, std::uint32_t most, const Visit& visit) {
    for (std::uint32_t row = rows.begin; row < rows.end;) {
      const std::uint32_t end = std::min({rows.end, row - row % kCodeRows + kCodeRows, row + most});
      visit(Range{row, end, 0});
      row = end;
    }
  }

 private:
  /// Rows of a call that are fewer lie one beside the other; more rows have room for whole vectors.
  static constexpr std::uint32_t kFewRows = 16;

  static std::uint32_t stride_for(std::uint32_t rows) {
    if (rows <= kFewRows) return rows;
    return rows <= kCodeRows / 2 ? kCodeRows / 2 : kCodeRows;
  }
};

}  // namespace forestvm::host
