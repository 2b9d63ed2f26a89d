// Numbers the different tests that a model's splits make, and finds the rows that go left at each: 64 rows at a time, a
// bit of a word for each row. Tests are made in the trainer's types, on the model itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "frontend/dependence_pieces.hpp"

namespace forestvm::frontend {

class SplitTests {
 public:
  static constexpr std::size_t kRows = 64;  ///< Rows of a word.

  /// Numbers the tests of a model, which must outlive the object.
  explicit SplitTests(const Model& model);

  std::size_t count() const { return tests_.size(); }

  /// Returns a split that makes a test.
  const FeatureTest& split(std::size_t test) const { return tests_[test]; }

  /// Returns the number of the test of each node that is a split, by tree.
  const std::vector<std::vector<std::uint32_t>>& numbers() const { return numbers_; }

  /// Returns whether some split tests a column.
  bool tests(std::uint32_t column) const { return read_[column] != 0; }

  /// Returns the rows of the current word that go left at a test.
  std::uint64_t left(std::size_t test) const { return left_[test]; }

  /// Goes through row-major values, model.num_features for each row, a word of rows at a time, and calls visit(present)
  /// for each word; `present` has a bit for each row in it. Values are rounded to float32 if the model compares in
  /// float32. `hashed_rows` means what it means in ReferenceOptions. Returns a Usage error for an incomplete row, and
  /// refuses values of hashed features that are not categories.
  template <class Visit>
  Result<void> each_word(std::span<const double> rows, bool hashed_rows, const Visit& visit) {
    FVM_ASSIGN(const std::size_t count, count_rows(rows));
    for (std::size_t begin = 0; begin < count; begin += kRows) {
      const std::size_t here = count - begin < kRows ? count - begin : kRows;
      FVM_TRY(take(rows.subspan(begin * model_.num_features, here * model_.num_features), here, hashed_rows));
      visit(here == kRows ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1);
    }
    return {};
  }

 private:
  /// The values of a column in the rows of a word.
  struct ColumnValues {
    std::array<double, kRows> values{};
    std::uint64_t nan = 0, tiny = 0;
  };

  Result<std::size_t> count_rows(std::span<const double> rows) const;
  /// Makes some rows the current word.
  Result<void> take(std::span<const double> rows, std::size_t count, bool hashed_rows);
  void load(std::span<const double> row, std::size_t bit);
  std::uint64_t left_rows(const FeatureTest& split) const;

  const Model& model_;
  std::vector<FeatureTest> tests_;
  std::vector<std::uint64_t> left_;  ///< Rows of the current word that go left, for each test.
  /// Number of the test of each node that is a split, by tree.
  std::vector<std::vector<std::uint32_t>> numbers_;
  std::vector<std::uint8_t> read_;  ///< 1 for each column that some split tests.
  std::vector<ColumnValues> columns_;
};

}  // namespace forestvm::frontend
