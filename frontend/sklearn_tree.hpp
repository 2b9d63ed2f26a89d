// Makes a Tree of the arrays of scikit-learn's `tree_`. In: a fitted DecisionTree or ExtraTree. Out: its splits, and
// access to the values and counts from which its ensemble makes leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <forestvm/model.hpp>

#include "frontend/python_objects.hpp"

namespace forestvm::frontend {

/// Returns the largest float32 number that is not above x. scikit-learn compares rows in float32 with thresholds in
/// float64; comparing them with this number has the same outcome.
double float_at_most(double x);

class SklearnTree {
 public:
  /// Reads a fitted tree estimator's arrays. Refuses estimators that are not trees, and arrays whose sizes disagree.
  static Result<SklearnTree> read(const PythonRef& estimator);

  std::size_t size() const { return nodes_.count; }
  std::size_t outputs() const { return outputs_; }
  std::size_t classes() const { return classes_; }
  bool is_leaf(std::size_t node) const { return left_.integer(node) < 0; }
  double value(std::size_t node, std::size_t output, std::size_t k) const {
    return value_.real((node * outputs_ + output) * classes_ + k);
  }
  std::int64_t samples(std::size_t node) const { return samples_.integer(node); }

  /// Returns how many nodes are on the way to each node, both ends included.
  Result<std::vector<std::int64_t>> path_lengths() const;

  /// Writes a leaf's outputs, as many as the leaves are wide.
  using FillLeaf = std::function<void(std::size_t node, std::span<double> outputs)>;
  /// Returns the tree. `features` has the model's feature for each of the tree's own; if it is empty, the tree has the
  /// model's `num_features` features. Leaves of a width over 1 are vector leaves.
  Result<Tree> tree(std::span<const std::int64_t> features, std::uint32_t num_features, std::uint32_t width,
                    const FillLeaf& fill) const;

 private:
  explicit SklearnTree(const PythonRef& state) : state_(state) {}

  Result<void> read_nodes(const PythonRef& nodes);
  Result<void> read_values(const PythonRef& values);
  Error error(std::size_t node, std::string_view message) const;
  Result<void> check_children(std::size_t node) const;
  Result<std::uint32_t> feature_of(std::size_t node, std::span<const std::int64_t> features,
                                   std::uint32_t num_features) const;

  PythonRef state_;
  NumpyArray nodes_, values_;
  NumpyColumn left_, right_, feature_, threshold_, samples_, weight_, missing_left_, value_;
  std::size_t outputs_ = 0, classes_ = 0;
};

}  // namespace forestvm::frontend
