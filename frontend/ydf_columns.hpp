// Reads the columns of a YDF model's data specification (data_spec.pb): the features and the label.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <forestvm/result.hpp>

#include "frontend/protobuf_wire.hpp"

namespace forestvm::frontend {

/// YDF's numbers of the types of columns; others are refused by name.
enum class YdfType : std::uint8_t { Numerical = 1, Categorical = 4, Boolean = 7, Discretized = 9 };

struct YdfColumn {
  YdfType type = YdfType::Numerical;
  std::string name;
  double mean = 0;                  ///< Mean of a numerical or discretized column.
  std::int64_t most_frequent = 0;   ///< Most frequent category.
  std::int64_t num_categories = 0;  ///< Number of categories; category 0 is that of unknown texts.
  bool integerized = false;         ///< True if the values are categories themselves, without a dictionary.
  std::vector<std::string> names;   ///< Names of the categories, by number.
  std::vector<float>
      boundaries;            ///< Lower bounds of the bins of a discretized column, from the second bin on.
  bool mostly_true = false;  ///< True if a boolean column has at least as many rows with true as with false.
};

/// Returns the messages of the columns.
Result<std::vector<WireMessage>> ydf_columns_of(WireMessage data_spec);

/// Reads a column. Refuses, by name, a type that no tree can test here.
Result<YdfColumn> read_ydf_column(WireMessage message);

}  // namespace forestvm::frontend
