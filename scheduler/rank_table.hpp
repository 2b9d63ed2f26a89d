// The thresholds and sets of categories that a program's coded trees test each feature with, and the columns
// of codes that its encoder writes for them. Tests are added, then the table is sealed; after that, a test's
// column and code can be found.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include <forestvm/core/categories.hpp>
#include <forestvm/core/encoder.hpp>
#include <forestvm/core/forest_data.hpp>
#include <forestvm/internal/statistics.hpp>
#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

#include "scheduler/layouts/test.hpp"

namespace forestvm::scheduler {

/// A test of rank codes, which sends a row right if its code of the column is above `code`.
struct CodedTest {
  std::uint32_t column;
  std::uint8_t code;

  bool operator==(const CodedTest&) const = default;
};

/// Returns an upper bound of the columns of codes that a model needs, whatever its schedule.
std::uint64_t most_columns(const ForestStatistics& forest);

class RankTable {
 public:
  void add(const Test& test);
  /// Numbers the columns that some test reads. Refuses more than kMaxColumns of them.
  Result<void> seal();

  /// Returns the column and code of a test that was added.
  CodedTest find(const Test& test) const;

  const std::vector<EncodedFeature>& features() const { return features_; }
  const std::vector<ColumnDesc>& columns() const { return columns_; }
  const std::vector<float>& ranks() const { return ranks_; }
  const std::vector<CategoryColumn>& categories() const { return categories_; }
  const std::vector<std::uint32_t>& category_words() const { return category_words_; }

 private:
  /// A set of categories as a key: sets of the same codes are equal.
  struct Membership {
    bool missing_highest;
    const CategorySet* set;
    bool operator<(const Membership& other) const {
      return std::tie(set->rule, missing_highest, set->codes) <
             std::tie(other.set->rule, other.missing_highest, other.set->codes);
    }
  };
  struct Feature {
    std::vector<float> thresholds[2];  ///< thresholds of tests that send missing values right [0] or left [1]
    std::vector<float> sorted;
    /// Columns of each kColumnThresholds thresholds, where missing values are lowest [0] or highest [1]; those that no
    /// test reads are kNoColumn.
    std::vector<std::uint32_t> columns[2];
    std::map<Membership, std::uint32_t> memberships;  ///< column of each set
  };

  static constexpr std::uint32_t kNoColumn = UINT32_MAX;

  static std::uint32_t rank_of(const Feature& feature, float threshold);

  void seal_ranks(std::uint32_t number, Feature& feature);
  void add_column(std::uint32_t number, const Membership& membership);

  std::map<std::uint32_t, Feature> by_feature_;
  std::vector<EncodedFeature> features_;
  std::vector<ColumnDesc> columns_;
  std::vector<float> ranks_;
  std::vector<CategoryColumn> categories_;
  std::vector<std::uint32_t> category_words_;
};

}  // namespace forestvm::scheduler
