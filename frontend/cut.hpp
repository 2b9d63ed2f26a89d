// A cut of the number line. Formats that test ranges or equalities are read as cuts, of which splits are made.
#pragma once

#include <compare>

namespace forestvm::frontend {

/// A gap between two neighbouring numbers: the one just below `number` or, if `after` is true, just above it. It
/// separates the numbers x < number, or x <= number, from the larger ones.
struct Cut {
  double number = 0;
  bool after = false;
  auto operator<=>(const Cut&) const = default;
};

}  // namespace forestvm::frontend
