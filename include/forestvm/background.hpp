// A background: rows with which contributions of features compare a row, instead of the training rows. Features that do
// not take part have the values of a background row, and contributions are the means over all of them (interventional
// SHAP values). Implemented by frontend/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm {

/// The rows of a background as a model's splits see them: which of them go left at each split.
class Background {
 public:
  /// The most bytes that a background may take: a bit for each row and each different test of the model.
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

  /// Takes row-major rows of `columns` values for a model that has passed check_model. They are rounded to float32 if
  /// the model compares in float32. `hashed_rows` is that of ReferenceOptions. Refused: no rows; other columns than the
  /// model's features; more than kMaxBytes; values that are no categories in hashed features.
  static Result<Background> make(const Model& model, std::span<const double> rows, std::size_t columns,
                                 bool hashed_rows = false);

  std::size_t rows() const { return rows_; }

  /// Returns whether a model has the trees of the model for which the background was made.
  bool fits(const Model& model) const {
    return std::equal(tests_.begin(), tests_.end(), model.trees.begin(), model.trees.end(),
                      [](const auto& tests, const Tree& tree) { return tests.size() == tree.nodes.size(); });
  }

  /// Returns the rows that go left at a split: row i is bit i % 64 of word i / 64. Bits behind the last row are 0.
  std::span<const std::uint64_t> left(std::size_t tree, std::size_t node) const {
    const std::size_t words = (rows_ + 63) / 64;
    return std::span(left_).subspan(tests_[tree][node] * words, words);
  }

 private:
  std::size_t rows_ = 0;
  std::vector<std::vector<std::uint32_t>>
      tests_;                        ///< Number of the test of each node that is a split, by tree.
  std::vector<std::uint64_t> left_;  ///< The rows that go left, test after test.
};

}  // namespace forestvm
