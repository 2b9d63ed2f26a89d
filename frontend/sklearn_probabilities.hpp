// The probabilities of classes in the leaves of scikit-learn's classification trees.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "frontend/sklearn_estimator.hpp"

namespace forestvm::frontend {

/// Returns the sum that NumPy's sum() gives: pairwise, in blocks.
double numpy_sum(std::span<const double> numbers);

/// Reads the probabilities of leaves, output by output. Releases before 1.4 store counts, which are divided by their
/// sum.
class SklearnProbabilities {
 public:
  /// `sizes` are the numbers of classes of the outputs.
  SklearnProbabilities(std::vector<std::size_t> sizes, SklearnVersion version)
      : sizes_(std::move(sizes)), counts_(version < SklearnVersion{1, 4, 0}) {}

  std::size_t width() const;
  /// Refuses a tree with other numbers of classes, and one whose values are not counts or probabilities as its release
  /// stores them.
  Result<void> check(const SklearnTree& tree, const PythonRef& estimator) const;
  /// Writes width() probabilities.
  void fill(const SklearnTree& tree, std::size_t node, std::span<double> out) const;

 private:
  std::vector<std::size_t> sizes_;
  bool counts_;
};

}  // namespace forestvm::frontend
