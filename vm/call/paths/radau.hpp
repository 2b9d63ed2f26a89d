// The points and weights of Gauss-Radau quadrature on [0, 1] with the point 0.
#pragma once

#include <vector>

namespace forestvm {

struct Radau {
  double first;                ///< Weight of the point 0; the further points' weights are `weights`.
  std::vector<double> points;  ///< Further points, ascending.
  std::vector<double> weights;
};

/// Returns the rule of `further` points besides 0, which is exact for polynomials up to degree 2 x further.
Radau radau(unsigned further);

}  // namespace forestvm
