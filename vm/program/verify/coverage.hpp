// Which elements of a range, or pairs of trees and rows, something was done for: what the verifier knows of
// memory that was written.
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

/// A set of elements. It may leave out some that were added, where they are scattered: it never has others.
class Intervals {
 public:
  void add(Interval added);
  bool covers(Interval wanted) const;
  auto begin() const { return parts_.begin(); }
  auto end() const { return parts_.end(); }

 private:
  std::vector<Interval> parts_;  ///< ascending, apart from each other
};

/// A set of pairs of trees and rows, with the same reservation.
class Rectangles {
 public:
  void add(Interval trees, Interval rows);
  /// The rows that were added with all of these trees.
  Intervals rows_of(Interval trees) const;
  /// The trees that were added with all of these rows.
  Intervals trees_of(Interval rows) const;

 private:
  struct Rectangle {
    Interval trees, rows;
  };
  std::vector<Rectangle> parts_;
};

}  // namespace forestvm::bytecode
