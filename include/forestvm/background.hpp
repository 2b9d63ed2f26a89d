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
  /// the model compares in float32. `hashed_rows` is true if hashed features hold codes of categories; otherwise they
  /// hold whole numbers, which stand for their decimal text (see Model::hashed_features). Refused: no rows; other
  /// columns than the model's features; more than kMaxBytes; values that are no categories in hashed features.
  static Result<Background> make(const Model& model, std::span<const double> rows, std::size_t columns,
                                 bool hashed_rows = false);

  std::size_t rows() const { return rows_; }

  /// Returns whether a model has the trees of the model for which the background was made.
  bool fits(const Model& model) const {
    return std::equal(tests_.begin(), tests_.end(), model.trees.begin(), model.trees.end(),
                      [](const auto& tests, const Tree& tree) { return tests.size() == tree.nodes.size(); });
  }

  /// The rows that go to a child of a split. Row i is bit i % 64 of word i / 64.
  class Side {
   public:
    Side(const std::uint64_t* words, bool inverted)
        : words_(words), inverted_(inverted ? ~std::uint64_t{0} : 0) {}
    std::uint64_t word(std::size_t i) const { return words_[i] ^ inverted_; }
    bool has(std::size_t row) const { return (word(row / 64) >> (row % 64) & 1) != 0; }

   private:
    const std::uint64_t* words_;
    std::uint64_t inverted_;  ///< All ones if the words are those of the other child.
  };

  /// Returns the rows that go to one child of a split: the one with the lower number if `lower`, otherwise the other.
  /// Compiling may exchange the left and the right child of a split, but nodes keep their numbers.
  Side side(std::size_t tree, std::size_t node, bool lower) const {
    const std::size_t words = (rows_ + 63) / 64;
    const TestOfSplit& test = tests_[tree][node];
    return {left_.data() + test.number * words, test.left_is_lower != lower};
  }

 private:
  struct TestOfSplit {
    std::uint32_t number;
    bool left_is_lower;  ///< True if the left child has the lower number.
  };

  std::size_t rows_ = 0;
  std::vector<std::vector<TestOfSplit>> tests_;  ///< The test of each node that is a split, by tree.
  std::vector<std::uint64_t> left_;              ///< The rows that go left, test after test.
};

}  // namespace forestvm
