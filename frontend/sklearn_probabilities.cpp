// See sklearn_probabilities.hpp.
#include "frontend/sklearn_probabilities.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <forestvm/internal/formatted.hpp>

namespace forestvm::frontend {

double numpy_sum(std::span<const double> numbers) {
  constexpr std::size_t most = 128, lanes = 8;
  const std::size_t count = numbers.size();
  if (count < lanes) return std::accumulate(numbers.begin(), numbers.end(), 0.0);
  if (count > most) {
    const std::size_t half = count / 2 - count / 2 % lanes;
    return numpy_sum(numbers.first(half)) + numpy_sum(numbers.subspan(half));
  }
  double r[lanes];
  std::copy_n(numbers.begin(), lanes, r);
  std::size_t i = lanes;
  for (; i + lanes <= count; i += lanes)
    for (std::size_t k = 0; k < lanes; ++k) r[k] += numbers[i + k];
  double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (; i < count; ++i) sum += numbers[i];
  return sum;
}

std::size_t SklearnProbabilities::width() const {
  return std::accumulate(sizes_.begin(), sizes_.end(), std::size_t{0});
}

Result<void> SklearnProbabilities::check(const SklearnTree& tree, const PythonRef& estimator) const {
  const std::size_t largest = *std::max_element(sizes_.begin(), sizes_.end());
  if (tree.outputs() != sizes_.size() || tree.classes() != largest)
    return estimator.error(formatted("a tree of {} outputs and {} classes instead of {} and {}",
                                     tree.outputs(), tree.classes(), sizes_.size(), largest));
  if (counts_) return {};
  for (std::size_t output = 0; output < sizes_.size(); ++output) {
    double sum = 0;
    for (std::size_t k = 0; k < sizes_[output]; ++k) sum += tree.value(0, output, k);
    if (!(std::abs(sum - 1) < 1e-6))
      return estimator.error(
          "the tree counts rows of each class as releases before 1.4 do, but was saved by a later one, "
          "which does not read such trees rightly: fit it again");
  }
  return {};
}

void SklearnProbabilities::fill(const SklearnTree& tree, std::size_t node, std::span<double> out) const {
  for (std::size_t output = 0; output < sizes_.size(); ++output) {
    const std::span<double> part = out.first(sizes_[output]);
    out = out.subspan(part.size());
    for (std::size_t k = 0; k < part.size(); ++k) part[k] = tree.value(node, output, k);
    const double sum = counts_ ? numpy_sum(part) : 1;
    if (sum != 0)
      for (double& value : part) value /= sum;
  }
}

}  // namespace forestvm::frontend
