// The parts of a CatBoost model file as either of its two formats gives them; catboost_model.cpp makes a Model of them.
// A feature has two numbers: its index among the features of its kind, and a flat index among all features.
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <forestvm/load.hpp>
#include <forestvm/model.hpp>
#include <forestvm/result.hpp>

namespace forestvm::frontend {

struct CatboostFloatFeature {
  std::int64_t index = -1;
  std::int64_t flat_index = -1;
  bool has_nans = false;
  bool nan_above = false;  ///< True for nan_value_treatment AsTrue, which matters only if has_nans is true.
  std::string name;
  std::vector<float> borders;
};

struct CatboostCategorical {
  std::int64_t index = -1;
  std::int64_t flat_index = -1;
  std::string name;
};

/// The codes that splits compare a categorical feature with.
struct CatboostOneHot {
  std::int64_t category = -1;  ///< Index among categorical features.
  std::vector<std::int32_t> codes;
};

/// The features and tests that are hashed into a table's key: see Lookup. The first number of each is an index among
/// the features of its kind.
struct CatboostCombination {
  std::vector<std::int64_t> categories;
  std::vector<std::pair<std::int64_t, float>> value_tests;
  std::vector<std::pair<std::int64_t, std::int32_t>> code_tests;

  auto operator<=>(const CatboostCombination&) const = default;
};

/// The formulas that compute a counter's value from a row of its table, with the numbers of the binary format.
enum class CtrType : std::uint8_t {
  Borders,
  Buckets,
  BinarizedTargetMeanValue,
  FloatTargetMeanValue,
  Counter,
  FeatureFreq
};

struct CatboostCtr {
  std::string table;  ///< Name of its table.
  CatboostCombination combination;
  CtrType type = CtrType::Borders;
  std::int64_t target_border = 0;
  float prior = 0;
  float prior_denominator = 1;
  float shift = 0;
  float scale = 1;
  std::vector<float> borders;
};

/// A training parameter: how counters of a type are made. Training turns targets into classes for them, in one way for
/// each pair of `target_borders` and `target_border_type`.
struct CatboostCtrOption {
  std::size_t list = 0;  ///< Number of the list in the file that holds the option.
  /// True if the option is for counters of several features or tests, false if for counters of single features.
  bool of_combinations = false;
  CtrType type = CtrType::Borders;
  std::int64_t target_borders = 0;
  std::string target_border_type;
};

/// The table of a combination: the counts that training made for each key.
struct CatboostTable {
  std::string name;
  std::string where;  ///< Place in the file, for messages.
  std::vector<std::uint64_t> keys;
  std::vector<std::uint32_t> rows;  ///< Row of `numbers` for each key.
  std::uint32_t width = 1;  ///< Numbers per row: one for each class, one counter, or a sum and a count.
  std::vector<double> numbers;
  std::int64_t denominator = 0;  ///< Number that counts of CtrType::Counter and FeatureFreq are divided by.
};

struct CatboostParts {
  const char* format = "";
  std::string version;
  std::string loss;
  std::string label_type;  ///< The value of class_params.class_label_type.
  std::vector<std::string> class_names;
  std::vector<double> class_to_label;
  std::int64_t classes_count = 0;
  std::string probability_threshold;  ///< Empty if it is CatBoost's default, 0.5.
  double learning_rate = NAN;         ///< NaN if the file does not say it.
  double shrink_rate = NAN;           ///< The parameter model_shrink_rate; NaN if the file does not say it.

  std::vector<CatboostFloatFeature> float_features;
  std::vector<CatboostCategorical> categorical_features;
  std::vector<CatboostOneHot> one_hots;
  std::vector<CatboostCtr> ctrs;
  std::vector<CatboostCtrOption> ctr_options;  ///< Empty for the binary format.
  std::vector<CatboostTable> tables;

  std::uint32_t num_outputs = 1;
  double scale = 1;
  std::vector<double> bias;
  std::vector<Tree> trees;  ///< Trees whose splits hold CatBoost's number of the split in Node::payload.
};

/// Reads the binary format, or the JSON format.
Result<CatboostParts> read_catboost_binary(std::span<const std::byte> bytes, const LoadLimits& limits);
Result<CatboostParts> read_catboost_document(std::span<const std::byte> bytes, const LoadLimits& limits);

}  // namespace forestvm::frontend
