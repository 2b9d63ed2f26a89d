// Matches the names in a table's header with a model's features.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <forestvm/result.hpp>

#include "cli/io/table.hpp"

namespace forestvm::cli {

/// Takes the names one by one and keeps a number for each, not the name. A model without names of its own has
/// the names that its trainer, or pandas, gives to unnamed columns: f0, f1, … or Column_0, Column_1, … or 0,
/// 1, ….
class ColumnNames {
 public:
  /// `form` must outlive it.
  explicit ColumnNames(const RowForm& form);

  /// Adds the next column's name.
  void add(std::string_view name);

  /// Returns whether each feature of the model is named exactly once, and nothing else is.
  bool are_known() const { return known() != nullptr; }

  /// Returns whether the names are the numbers from 0 on, in any order, as pandas writes unnamed columns.
  bool are_numbers() const { return numbers_.are_all(form_.width); }

  /// Returns the feature of each column; empty if the order is the model's. The names must be known.
  std::vector<std::uint32_t> order() const;

  /// Returns the error for names that do not match a model's own: lists features and columns without a
  /// counterpart.
  Error mismatch() const;

 private:
  /// The features that columns name. are_all is true if each is named exactly once.
  class Places {
   public:
    void add(std::uint32_t place, std::size_t width);
    void add_none() { complete_ = false; }
    bool are_all(std::size_t width) const { return complete_ && order_.size() == width; }
    bool has(std::uint32_t place) const { return place < seen_.size() && seen_[place]; }
    const std::vector<std::uint32_t>& order() const { return order_; }

   private:
    std::vector<std::uint32_t> order_;
    std::vector<bool> seen_;
    bool complete_ = true;
  };

  const Places* known() const;
  void add_own(std::string_view name);
  /// Returns the place in by_name_ of the feature of this name; by_name_.end() if there is none.
  std::vector<std::uint32_t>::const_iterator find(std::string_view name) const;
  static void add_default(std::string_view name, std::string_view prefix, std::size_t width, Places& places);

  const RowForm& form_;
  std::vector<std::uint32_t> by_name_;  // the model's features, sorted by name
  Places own_, numbers_, xgboost_, lightgbm_;
  std::vector<std::string> strange_;  // the first few names that the model does not have
  std::size_t strange_count_ = 0;
  std::string twice_;
};

}  // namespace forestvm::cli
