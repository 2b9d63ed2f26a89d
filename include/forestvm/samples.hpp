// Samples: training rows with their targets, which the leaves of a program keep to compute quantiles of the targets
// (OutputKind::Quantile), as quantile regression forests do. Implemented by frontend/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// The targets of the training rows that reach each leaf of a model.
class Samples {
 public:
  /// The most bytes that samples may take: a number of 4 bytes for each row and tree.
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

  /// Takes row-major rows of `columns` values for a model that has passed check_model, and a target for each row. Rows
  /// are rounded to float32 if the model compares in float32. `hashed_rows` is true if hashed features hold codes of
  /// categories; otherwise they hold whole numbers, which stand for their decimal text (see Model::hashed_features).
  /// Refused: no rows; other columns than the model's features; another number of targets than rows; targets that are
  /// not finite; more than kMaxBytes; models of several outputs, and those of several trees that do not average them;
  /// values that are no categories in hashed features.
  static Result<Samples> make(const Model& model, std::span<const double> rows, std::size_t columns,
                              std::span<const double> targets, bool hashed_rows = false);

  /// The different targets, ascending.
  std::span<const double> targets() const { return targets_; }

  /// Returns the indices of the targets of a leaf's rows, ascending. Compiling may exchange the children of a split,
  /// but nodes keep their numbers.
  std::span<const std::uint32_t> of_leaf(std::size_t tree, std::size_t node) const {
    const TreeSamples& samples = trees_[tree];
    return std::span(samples.targets)
        .subspan(samples.begins[node], samples.begins[node + 1] - samples.begins[node]);
  }

  /// Returns whether a model has the trees of the model for which the samples were made.
  bool fits(const Model& model) const {
    return std::equal(trees_.begin(), trees_.end(), model.trees.begin(), model.trees.end(),
                      [](const TreeSamples& samples, const Tree& tree) {
                        return samples.begins.size() == tree.nodes.size() + 1;
                      });
  }

 private:
  struct TreeSamples {
    std::vector<std::uint32_t> begins;   ///< Index of each node's first target, then their number.
    std::vector<std::uint32_t> targets;  ///< Indices of targets, node after node.
  };

  std::vector<double> targets_;
  std::vector<TreeSamples> trees_;
};

}  // namespace forestvm
