// Matches the names in a table's header with a model's features.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/result.hpp>

#include "cli/io/table.hpp"

namespace forestvm::cli {

/// Stands for the feature of a column that is not a feature of the model.
inline constexpr std::uint32_t kNoFeature = std::numeric_limits<std::uint32_t>::max();

/// Finds the features of a model by their names.
class FeatureNames {
 public:
  /// `form` must outlive it.
  explicit FeatureNames(const RowForm& form);

  /// Returns the feature of this name; kNoFeature if there is none. A model without names of its own has the names that
  /// its trainer, or pandas, gives to unnamed columns: f0, f1, … or Column_0, Column_1, … or 0, 1, ….
  std::uint32_t find(std::string_view name) const;

  /// Returns a name that several features have; nothing if there is none.
  std::optional<std::string_view> ambiguous() const;

  /// Returns the feature whose number follows `prefix` in `name`; kNoFeature if `name` has another form.
  static std::uint32_t numbered(std::string_view name, std::string_view prefix, std::size_t width);

 private:
  std::uint32_t find_exact(std::string_view name) const;

  const RowForm& form_;
  std::vector<std::uint32_t> by_name_;  // the model's features, sorted by name
};

/// Takes the names of a header one by one and keeps a number for each, not the name.
class ColumnNames {
 public:
  /// `form` must outlive it.
  explicit ColumnNames(const RowForm& form) : form_(form), features_(form) {}

  /// Adds the next column's name. `whole` is the name with the spaces around it, which the model's name may have, too.
  void add(std::string_view name, std::string_view whole);

  /// Returns whether each feature of the model is named exactly once, and all other columns may be extra.
  bool are_known() const { return known() != nullptr; }

  /// Returns whether the names are the numbers from 0 on, in any order, as pandas writes unnamed columns.
  bool are_numbers() const { return numbers_.are_all(form_.width); }

  /// Returns whether the names are 1, 2, 3 and so on.
  bool count_from_one() const { return from_one_; }

  /// Returns the feature of each column, kNoFeature for extra ones; empty if the columns are the model's features in
  /// their order. The names must be known.
  std::vector<std::uint32_t> order() const;

  /// Returns the index of the column to keep as text, if the header names it.
  std::optional<std::size_t> kept() const { return kept_; }

  /// Refuses two columns with the name of the one to keep.
  Result<void> check_kept() const;

  /// Returns the error for names that do not match a model's own. It lists features and columns without a counterpart.
  Error mismatch() const;

  /// Returns a hint, to be appended to an error, if the first column looks like pandas' index; otherwise nothing.
  std::string index_hint() const;

 private:
  /// The features that the columns name, if names are read in one of the possible ways.
  class Naming {
   public:
    /// Adds a column's feature. `extra` says whether the column need not be a feature.
    void add(std::uint32_t feature, std::size_t width, bool extra);
    /// Returns whether each feature is named exactly once, and all other columns may be extra.
    bool are_all(std::size_t width) const { return complete_ && named_ == width; }
    bool has(std::uint32_t feature) const { return feature < seen_.size() && seen_[feature]; }
    const std::vector<std::uint32_t>& order() const { return order_; }

   private:
    std::vector<std::uint32_t> order_;
    std::vector<bool> seen_;
    std::size_t named_ = 0;
    bool complete_ = true;
  };

  const Naming* known() const;

  const RowForm& form_;
  FeatureNames features_;
  Naming own_, numbers_, xgboost_, lightgbm_;
  std::vector<std::string> strange_;  // the first few names that no feature has
  std::size_t strange_count_ = 0;
  std::string twice_;
  std::size_t count_ = 0;
  std::optional<std::size_t> kept_;
  bool kept_twice_ = false, from_one_ = true;
  bool first_is_index_ = false;  // true: the first column's name is one that pandas gives its index
};

}  // namespace forestvm::cli
