// Sets of elements of a range, and of pairs of trees and rows, for which something was done: the verifier's
// knowledge of memory that was written.
#pragma once

#include <cstdint>
#include <vector>

namespace forestvm::bytecode {

/// Elements [from, to) of a loop's iteration, counted from its first.
struct Interval {
  std::uint32_t from = 0;
  std::uint32_t to = 0;

  bool empty() const { return from >= to; }
  bool operator==(const Interval&) const = default;
};

/// A set of elements. It may leave out some scattered elements that were added, but never has elements that were
/// not.
class Intervals {
 public:
  void add(Interval added);
  bool covers(Interval wanted) const;
  auto begin() const { return parts_.begin(); }
  auto end() const { return parts_.end(); }

 private:
  std::vector<Interval> parts_;  ///< Intervals that ascend and do not touch.
};

/// A set of pairs of trees and rows. It may leave out some pairs that were added, but never has pairs that were
/// not.
class Rectangles {
 public:
  void add(Interval trees, Interval rows);
  /// Returns the rows that were added with all of these trees.
  Intervals rows_of(Interval trees) const;
  /// Returns the trees that were added with all of these rows.
  Intervals trees_of(Interval rows) const;

 private:
  struct Rectangle {
    Interval trees, rows;
  };
  std::vector<Rectangle> parts_;
};

}  // namespace forestvm::bytecode
