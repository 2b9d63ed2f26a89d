// A cut of the number line, by which formats whose tests are ranges or equalities become splits.
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
