// Small CatBoost models for tests, binary and JSON, written by hand.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "load_text.hpp"

namespace forestvm::test {

/// A FlatBuffers table to write: its fields by number.
class FlatTableText {
 public:
  template <class Number>
  FlatTableText& number(unsigned field, Number value) {
    return add({field, Kind::Inline, 0, bytes_of_number(value), {}, {}});
  }
  template <class Number>
  FlatTableText& numbers(unsigned field, const std::vector<Number>& values) {
    std::string bytes;
    for (const Number& value : values) bytes += bytes_of_number(value);
    return add({field, Kind::List, values.size(), std::move(bytes), {}, {}});
  }
  FlatTableText& text(unsigned field, const std::string& value) {
    return add({field, Kind::List, value.size(), value, {}, {}});
  }
  FlatTableText& texts(unsigned field, const std::vector<std::string>& values);
  FlatTableText& table(unsigned field, FlatTableText value);
  FlatTableText& tables(unsigned field, std::vector<FlatTableText> values);

  /// Returns the message whose root this is.
  std::string message() const;

  template <class Number>
  static std::string bytes_of_number(Number value) {
    return {reinterpret_cast<const char*>(&value), sizeof(value)};
  }

 private:
  enum class Kind : std::uint8_t { Inline, List, Texts, Table, Tables };
  struct Field {
    unsigned number = 0;
    Kind kind = Kind::Inline;
    std::size_t count = 0;  ///< List
    std::string bytes;      ///< Inline, List
    std::vector<std::string> texts;
    std::vector<FlatTableText> tables;
  };

  FlatTableText& add(Field field);
  void write(std::string& out) const;

  std::vector<Field> fields_;
};

/// A model of two numeric features and a categorical one: an oblivious tree of two levels, or a tree of two splits.
/// The splits are, by number: f0 > 0.5, f0 > 1.5, f1 > -1; the code of "a"; counter > 0.5.
struct SmallCatboost {
  std::vector<std::int32_t> splits = {0, 2};
  std::vector<std::int32_t> sizes = {2};
  std::vector<std::int32_t> starts = {0};
  std::vector<double> leaf_values = {1, 2, 4, 8};
  std::vector<double> leaf_weights;
  std::vector<std::pair<std::uint16_t, std::uint16_t>> steps;
  std::vector<std::uint32_t> leaves;
  std::int32_t dimension = 1;
  double scale = 1;
  std::vector<double> bias = {0.25};
  bool has_nans = true;
  std::int8_t nan_treatment = 1;
  std::vector<float> borders = {0.5f, 1.5f};
  std::vector<std::int32_t> flat_indices = {0, 1, 2};
  std::vector<std::int32_t> codes;  ///< one-hot codes of the categorical feature
  bool counter = false;             ///< adds a counter of the categorical feature, with the border 0.5
  std::int8_t counter_type = 0;
  std::int32_t target_border = 0;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> slots;  ///< hash map of the counter's table
  std::vector<std::int32_t> counts;
  std::int32_t classes = 2;
  std::int32_t denominator = 0;
  std::string loss = "RMSE";
  std::string class_params;
  std::string threshold;
  std::string format_version = "FlabuffersModel_v1";
  std::vector<std::string> part_ids;  ///< "static_provider_v1" is added if there is a counter
  unsigned refused_features = 0;      ///< number of a field to which a table is added
  bool leave_out_table = false;

  /// Returns the message with the model.
  std::string core() const;
  std::string cbm() const;
};

/// Returns `text` after its size.
std::string sized(const std::string& text);

/// Returns a document of two numeric features and a categorical one with a counter.
std::string small_catboost_json();

/// Returns a document of one tree that is not oblivious.
std::string branching_catboost_json();

}  // namespace forestvm::test
